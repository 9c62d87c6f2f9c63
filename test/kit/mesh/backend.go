package mesh

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// Backend answers HTTP requests with its name.
type Backend struct {
	Name string
	Port int

	server *http.Server
}

// NewBackend starts one on a free port.
func NewBackend(t testing.TB, name string) *Backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Backend{Name: name, Port: l.Addr().(*net.TCPAddr).Port}
	b.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.server.Serve(l) }()
	t.Cleanup(func() { b.Stop(); <-ended })
	return b
}

// Stop ends it at once. It may be called twice.
func (b *Backend) Stop() { _ = b.server.Close() }
