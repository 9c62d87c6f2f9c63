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

// Most is how many clients may follow the events of a Page at once.
const Most = 20

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
	glance func() []byte
	// closed is when clients are sent away for good.
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	clients int
	said    []byte
	changed chan struct{} // closed when said has changed
	stop    chan struct{} // closed when the last client has gone
}

// New returns a page. glance returns what is seen at first glance, as JSON on one line; one
// goroutine calls it every two seconds while somebody looks.
func New(glance func() []byte) *Page {
	return &Page{glance: glance, closed: make(chan struct{}), changed: make(chan struct{})}
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

// Events tells a client what is seen at first glance, and again each time it has changed, by
// server-sent events of type glance. Who reads slowly is told the newest alone. Who doesn't read is
// sent away, and so is who comes when Most are there.
func (p *Page) Events(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		w.Header().Set("Retry-After", again)
		http.Error(w, fmt.Sprintf("%d clients follow the events already", Most), http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
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
		said, changed := p.newest()
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

func (p *Page) newest() (said []byte, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said, p.changed
}

// enter lets a client in; with the first one it is begun to look.
func (p *Page) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients >= Most {
		return false
	}
	if p.clients++; p.clients == 1 {
		p.said, p.stop = nil, make(chan struct{})
		go p.look(p.stop)
	}
	return true
}

func (p *Page) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients--; p.clients == 0 {
		close(p.stop)
	}
}

// look tells all clients what has changed, until stop is closed.
func (p *Page) look(stop <-chan struct{}) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		p.say(p.glance(), stop)
		select {
		case <-t.C:
		case <-stop:
			return
		}
	}
}

// say keeps what is seen now, unless it was seen for clients that have gone.
func (p *Page) say(text []byte, stop <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-stop:
		return
	default:
	}
	if bytes.Equal(text, p.said) {
		return
	}
	p.said = text
	close(p.changed)
	p.changed = make(chan struct{})
}
