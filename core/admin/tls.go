package admin

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// recordHandshake is the first byte of a connection by TLS (RFC 8446, section 5.1); no request in
// plain text begins with it.
const recordHandshake = 22

// halves are the connections of a port by TLS and those in plain text, told apart by their first
// byte.
type halves struct {
	net.Listener
	plain, secure *half
	// opening has connections until they have said their first byte.
	opening sync.WaitGroup
	mu      sync.Mutex
	silent  map[net.Conn]bool
	closed  bool
}

// half is a listener of one of the two.
type half struct {
	of    net.Listener
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

// split tells the connections of a listener apart until it is closed.
func split(l net.Listener) *halves {
	h := &halves{Listener: l, silent: map[net.Conn]bool{}}
	h.plain, h.secure = newHalf(l), newHalf(l)
	return h
}

func newHalf(l net.Listener) *half {
	return &half{of: l, conns: make(chan net.Conn), over: make(chan struct{})}
}

// leastPause and longestPause are how long it is waited after a connection could not be accepted,
// as where files are short.
const leastPause, longestPause = 5 * time.Millisecond, time.Second

// run accepts connections until the port is closed. One that says nothing in time is closed.
func (h *halves) run() {
	defer h.opening.Wait()
	defer h.end()
	pause := leastPause
	for {
		c, err := h.Accept()
		if err != nil {
			select {
			case <-h.secure.over:
				return
			case <-time.After(pause):
				pause = min(2*pause, longestPause)
				continue
			}
		}
		pause = leastPause
		if !h.opens(c) {
			continue
		}
		h.opening.Go(func() {
			defer h.opened(c)
			_ = c.SetReadDeadline(time.Now().Add(readTimeout / 3))
			in := bufio.NewReaderSize(c, 1)
			first, err := in.Peek(1)
			if err != nil || c.SetReadDeadline(time.Time{}) != nil {
				_ = c.Close()
				return
			}
			to := h.plain
			if first[0] == recordHandshake {
				to = h.secure
			}
			select {
			case to.conns <- &begun{Conn: c, in: in}:
			case <-to.over:
				_ = c.Close()
			}
		})
	}
}

// opens notes a connection that is to say something; false: the port has closed.
func (h *halves) opens(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return false
	}
	h.silent[c] = true
	return true
}

func (h *halves) opened(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.silent, c)
}

// end closes connections that have not said anything.
func (h *halves) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.silent {
		_ = c.Close()
	}
}

// begun is a connection of which something was read.
type begun struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (b *begun) Read(to []byte) (int, error) { return b.in.Read(to) }

// Accept implements net.Listener.
func (h *half) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener: with one of them the port closes.
func (h *half) Close() error {
	h.once.Do(func() { close(h.over) })
	return h.of.Close()
}

// Addr implements net.Listener.
func (h *half) Addr() net.Addr { return h.of.Addr() }

// both serves a port by TLS with one server and in plain text with another, until it is closed.
func (s *Server) both(secure, plain *http.Server, l net.Listener) error {
	h := split(l)
	var others sync.WaitGroup
	others.Go(func() { _ = plain.Serve(h.plain) })
	others.Go(h.run)
	err := secure.Serve(tls.NewListener(h.secure, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetConfigForClient: s.certificate,
	}))
	others.Wait()
	return err
}

// certificate is how a connection is secured: as at the secure port.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c, err := s.cfg.TLS(hello.Context())
	if err != nil {
		return nil, err
	}
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return c, nil
}

// plainly serves what comes in plain text where pages are for TLS: from this machine everything,
// from elsewhere what everybody may see.
func plainly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/ready" || r.URL.Path == "/metrics" || r.URL.Path == "/version"
		if !local(r) && !open {
			http.Error(w, "from other machines this page is asked for by https, at the monitoring port", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
