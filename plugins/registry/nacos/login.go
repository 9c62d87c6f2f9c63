package nacos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// login has the token that goes along with questions. Several goroutines use it.
type login struct {
	config *Config
	http   *http.Client

	mu sync.Mutex
	// at is when the token was given, until is when another one is asked for.
	now       string
	at, until time.Time
}

func newLogin(c *Config) (*login, error) {
	setup, err := c.TLS.Config()
	if err != nil {
		return nil, err
	}
	return &login{config: c, http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: setup, TLSHandshakeTimeout: c.Timeout, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		// The password would go along to wherever a redirection leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (l *login) close() { l.http.CloseIdleConnections() }

// token returns a token that counts at the moment, and asks a server for one where there is none;
// empty: without a username none is needed.
func (l *login) token(ctx context.Context, s server) (string, error) {
	if l.config.Username == "" {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != "" && time.Now().Before(l.until) {
		return l.now, nil
	}
	password, err := l.config.Secret()
	if err != nil {
		return "", err
	}
	for _, path := range loginPaths {
		token, lives, err := l.ask(ctx, s.http+path, password)
		if gone := (*statusError)(nil); errors.As(err, &gone) && gone.otherPath() {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("login at %s: %w", s.http, err)
		}
		l.now, l.at = token, time.Now()
		l.until = l.at.Add(lives - lives/10)
		return l.now, nil
	}
	return "", fmt.Errorf("login at %s: there is no Nacos that takes passwords; contextPath has to be the server's", s.http)
}

// loginPaths are those of Nacos 3 and of earlier ones; it is never changed.
var loginPaths = []string{"/v3/auth/user/login", "/v1/auth/login"}

// least is how long a token counts at least, whatever a server says that takes it no more: who may
// not see something is refused with any.
const least = 30 * time.Second

// forget gives a token up that a server took no more, and reports whether another one may help.
func (l *login) forget(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token == "" {
		return false
	}
	if l.now == token {
		if time.Since(l.at) < least {
			return false
		}
		l.now = ""
	}
	return true
}

// renew gives the token up, as when a connection ended.
func (l *login) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) > least {
		l.now = ""
	}
}

// statusError is an answer to a login that isn't 200.
type statusError struct{ status int }

func (e *statusError) otherPath() bool {
	lacks := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented}
	return slices.Contains(lacks, e.status)
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: it doesn't take username and password", e.status) // Nacos 3 says 500, too
}

// maxLogin is how large the answer to a login may be.
const maxLogin = 1 << 20

func (l *login) ask(ctx context.Context, url string, password string) (token string, lives time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.Timeout, errors.New("no whole answer in time"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form(l.config.Username, password)))
	if err != nil {
		return "", 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := l.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxLogin))
	if answer.StatusCode != http.StatusOK {
		return "", 0, &statusError{answer.StatusCode}
	}
	if err != nil {
		return "", 0, err
	}
	var got struct {
		Token string `json:"accessToken"`
		TTL   int64  `json:"tokenTtl"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
		return "", 0, errors.New("the answer has no accessToken")
	}
	if got.TTL <= 0 || got.TTL > int64(24*time.Hour/time.Second) {
		got.TTL = int64(time.Hour / time.Second)
	}
	return got.Token, time.Duration(got.TTL) * time.Second, nil
}

func form(username, password string) string {
	return url.Values{"username": {username}, "password": {password}}.Encode()
}
