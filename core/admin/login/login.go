// Package login knows who may change something from a page: whoever can give commands gets a code
// that counts once, and whoever shows it is known by a cookie and a token until the login ends.
package login

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
)

const (
	// codeLife is how long a code may be exchanged, idle how long a login lasts that does nothing,
	// and longest how long any does.
	codeLife = time.Minute
	idle     = 30 * time.Minute
	longest  = 8 * time.Hour
	// most is how many codes, and how many logins, there may be.
	most = 16
)

// hash is what is kept of a code, a cookie or a token: what they are is known to the browser alone.
type hash = [sha256.Size]byte

// Logins are the codes and logins of a control plane; they end with it. Any goroutine may call its
// methods.
type Logins struct {
	mu     sync.Mutex
	codes  map[hash]code
	logins map[hash]*login
}

type code struct {
	who   audit.Who
	until time.Time
}

type login struct {
	who         audit.Who
	token       hash
	until, last time.Time
}

// New has no logins.
func New() *Logins { return &Logins{codes: map[hash]code{}, logins: map[hash]*login{}} }

// Code returns a code for somebody. The error says that too many wait to be exchanged.
func (l *Logins) Code(who audit.Who) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	if len(l.codes) >= most {
		return "", errors.New("too many codes for logins have not been used; they end within a minute")
	}
	text := rand.Text()
	l.codes[sha256.Sum256([]byte(text))] = code{who, time.Now().Add(codeLife)}
	return text, nil
}

// Entered is a login that began. Whoever acts shows both: the cookie, which scripts can't read and
// which browsers send to other ports of the host, too; and the token, which only the page has.
type Entered struct {
	Cookie, Token string
	Who           audit.Who
	Lasts         time.Duration
}

// Enter exchanges a code, once; ok is false where it doesn't count. Where there are too many logins
// the one that was used longest ago ends.
func (l *Logins) Enter(text string) (e Entered, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	by := sha256.Sum256([]byte(text))
	c, ok := l.codes[by]
	if !ok {
		return e, false
	}
	delete(l.codes, by)
	for len(l.logins) >= most {
		var oldest hash
		for id, s := range l.logins {
			if o := l.logins[oldest]; o == nil || s.last.Before(o.last) {
				oldest = id
			}
		}
		delete(l.logins, oldest)
	}
	e = Entered{Cookie: rand.Text(), Token: rand.Text(), Who: c.who, Lasts: longest}
	now := time.Now()
	l.logins[sha256.Sum256([]byte(e.Cookie))] = &login{c.who, sha256.Sum256([]byte(e.Token)), now.Add(longest), now}
	return e, true
}

// Who returns who has logged in with a cookie and a token.
func (l *Logins) Who(cookie, token string) (who audit.Who, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	s := l.logins[sha256.Sum256([]byte(cookie))]
	given := sha256.Sum256([]byte(token))
	if s == nil || subtle.ConstantTimeCompare(given[:], s.token[:]) != 1 {
		return who, false
	}
	s.last = time.Now()
	return s.who, true
}

// Leave ends a login.
func (l *Logins) Leave(cookie string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.logins, sha256.Sum256([]byte(cookie)))
}

// forget forgets what is over.
func (l *Logins) forget() {
	now := time.Now()
	for id, c := range l.codes {
		if now.After(c.until) {
			delete(l.codes, id)
		}
	}
	for id, s := range l.logins {
		if now.After(s.until) || now.Sub(s.last) > idle {
			delete(l.logins, id)
		}
	}
}
