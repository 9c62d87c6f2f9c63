// Package ui is the page on which people look at a control plane: what of it is the same for
// everybody (dist, made of the sources in page by `make ui`), and the events by which it is told
// what has changed. What else it shows it asks debug pages for.
package ui

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"
)

//go:embed dist/index.html dist/page.css dist/page.js dist/LICENCES.txt
var files embed.FS

// Most is how many clients may follow the events of a Page at once. Narrow is how many of them may
// be of scopes that have a name, OfScope how many of one of these.
const (
	Most    = 20
	Narrow  = 10
	OfScope = 4
)

const (
	// every is how often it is looked whether something has changed, for all clients together.
	every = 2 * time.Second
	// beat is how long nothing is said at most, so that a client that has gone is noticed.
	beat = 15 * time.Second
	// again is after how many seconds who was refused may ask again.
	again = "5"
	// patience is how long a client may take to read what it is told.
	patience = 10 * time.Second
)

// policy lets the page have what it brings with it, and ask this control plane.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page serves the page and its events.
type Page struct {
	glance func(scope string) []byte
	// closed is when clients are sent away for good.
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	scopes map[string]*scope // those that somebody follows
}

// scope is what clients who may see the same are told.
type scope struct {
	clients int
	said    []byte
	changed chan struct{} // closed when said has changed
	stop    chan struct{} // closed when the last client has gone
}

// New returns a page. glance returns what who may see a scope sees at first glance, as JSON on one
// line; one goroutine for each scope calls it every two seconds while somebody looks. No name
// stands for all that there is.
func New(glance func(scope string) []byte) *Page {
	return &Page{glance: glance, closed: make(chan struct{}), scopes: map[string]*scope{}}
}

// Close ends all events: a server that stops waits for no client.
func (p *Page) Close() { p.once.Do(func() { close(p.closed) }) }

// Static serves what of the page is the same for everybody, below a path that ends in /.
func (p *Page) Static(below string) http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // the path is a constant
	}
	h := http.StripPrefix(below, http.FileServerFS(dist))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		h.ServeHTTP(w, r)
	})
}

// secure refuses what the page needs not: scripts of others, frames around it, guessed types.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Events tells a client what is seen of a scope at first glance, and again each time it has
// changed, by server-sent events of type glance. Who reads slowly is told the newest alone. Who
// doesn't read is sent away, and so is who comes when as many are there as may be.
func (p *Page) Events(of string, w http.ResponseWriter, r *http.Request) {
	s := p.enter(of)
	if s == nil {
		w.Header().Set("Retry-After", again)
		http.Error(w, "as many clients follow the events already as may", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(of, s)
	secure(w.Header())
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	say := func(text []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // where the connection has one
		if _, err := w.Write(text); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	pause := time.NewTicker(beat)
	defer pause.Stop()
	var last []byte
	for {
		said, changed := p.newest(s)
		if said != nil && !bytes.Equal(said, last) {
			last = said
			if !say(fmt.Appendf(nil, "event: glance\ndata: %s\n\n", said)) {
				return
			}
		}
		select {
		case <-changed:
		case <-pause.C:
			if !say([]byte(": still here\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
	}
}

func (p *Page) newest(s *scope) (said []byte, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.said, s.changed
}

// enter lets a client of a scope in, with whose first one it is begun to look; nil: there is no
// place.
func (p *Page) enter(of string) *scope {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, narrow := 0, 0
	for name, s := range p.scopes {
		if all += s.clients; name != "" {
			narrow += s.clients
		}
	}
	s := p.scopes[of]
	if all >= Most || of != "" && (narrow >= Narrow || s != nil && s.clients >= OfScope) {
		return nil
	}
	if s == nil {
		s = &scope{changed: make(chan struct{}), stop: make(chan struct{})}
		p.scopes[of] = s
		go p.look(of, s)
	}
	s.clients++
	return s
}

func (p *Page) leave(of string, s *scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.clients--; s.clients == 0 {
		close(s.stop)
		delete(p.scopes, of)
	}
}

// look tells a scope's clients what has changed, until the last has gone.
func (p *Page) look(of string, s *scope) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		p.say(p.glance(of), s)
		select {
		case <-t.C:
		case <-s.stop:
			return
		}
	}
}

// say keeps what is seen now.
func (p *Page) say(text []byte, s *scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(text, s.said) {
		return
	}
	s.said = text
	close(s.changed)
	s.changed = make(chan struct{})
}
