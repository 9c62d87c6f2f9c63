package admin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// naming has identities such as NAMESPACE/NAME.
var naming = caller.Naming{Operators: "operators", Namespaces: func(identities []string) (all []string) {
	for _, id := range identities {
		namespace, _, _ := strings.Cut(id, "/")
		all = append(all, namespace)
	}
	return all
}}

// TestWhoSeesDebugPages: from elsewhere only operators that an authenticator vouches for;
// readiness, metrics and the version are everybody's.
func TestWhoSeesDebugPages(t *testing.T) {
	who := func(_ context.Context, s Shown) ([]string, error) {
		switch s.Headers.Get("Authorization") {
		case "Bearer operator":
			return []string{"operators/admin"}, nil
		case "Bearer shop":
			return []string{"shop/web"}, nil
		case "Bearer away":
			return nil, status.Error(codes.Unavailable, "plugin tokens is away")
		}
		return nil, status.Error(codes.Unauthenticated, "tokens: unknown token")
	}
	serve := func(a *Server, path, local, remote, host, token string) (int, string) {
		t.Helper()
		r := httptest.NewRequest("GET", "http://"+host+path, nil)
		r.RemoteAddr = remote
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		at, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			t.Fatal(err)
		}
		w, h := httptest.NewRecorder(), a.Monitoring()
		if path == "/ready" {
			h = a.HTTP()
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at)))
		return w.Code, w.Body.String()
	}
	a, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Caller: who, Naming: naming})
	if err != nil {
		t.Fatal(err)
	}
	const inside, outside, peer = "127.0.0.1:8080", "10.0.0.5:8080", "10.0.0.9:4000"
	for _, path := range []string{"/debug", "/debug/list", "/debug/plugins", "/debug/configz", "/debug/config_dump?proxyID=a", "/debug/rowz?table=mesh", "/debug/pprof/",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
		for _, c := range []struct {
			local, remote, host, token string
			code                       int
		}{
			{inside, "127.0.0.1:4000", "localhost:8080", "", 200},
			{inside, "127.0.0.1:4000", "127.0.0.1:8080", "", 200},
			{"[::1]:8080", "[::1]:4000", "[::1]:8080", "", 200},
			{inside, "127.0.0.1:4000", "evil.example:8080", "", 403},
			{outside, peer, "10.0.0.5:8080", "", 401},
			{outside, peer, "localhost", "", 401},
			{outside, "127.0.0.1:4000", "localhost", "", 401},
			{outside, peer, "10.0.0.5:8080", "forged", 401},
			{outside, peer, "10.0.0.5:8080", "shop", 403},
			{outside, peer, "10.0.0.5:8080", "away", 503},
			{outside, peer, "10.0.0.5:8080", "operator", 200},
		} {
			if code, text := serve(a, path, c.local, c.remote, c.host, c.token); code != c.code {
				t.Errorf("%s of %+v: %d %s", path, c, code, text)
			}
		}
	}
	for _, path := range []string{"/ready", "/metrics", "/version"} {
		if code, text := serve(a, path, outside, peer, "any.example", ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	nobody := start(t, twin{})
	if code, text := serve(nobody, "/debug/plugins", outside, peer, "10.0.0.5", "operator"); code != 403 || !strings.Contains(text, "kind authenticator") {
		t.Errorf("without an authenticator: %d %s", code, text)
	}
}

// TestPagesAreForReading: other methods are refused.
func TestPagesAreForReading(t *testing.T) {
	a := start(t, twin{})
	for _, path := range []string{"/debug/plugins", "/debug/pprof/symbol", "/debug/pprof/profile", "/metrics", "/version"} {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			r := here(path)
			r.Method = method
			w := httptest.NewRecorder()
			if a.Monitoring().ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}

// TestPagesAtOnce: no more than a few are made at a time; others wait a while, and are then sent
// away with the time after which to try again.
func TestPagesAtOnce(t *testing.T) {
	g := newGate(Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	h := g.debug(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	done := make(chan struct{}, atOnce)
	for range atOnce {
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), here("/debug/x"))
			done <- struct{}{}
		}()
		<-entered
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, here("/debug/x")); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d", w.Code)
	}
	close(leave)
	for range atOnce {
		<-done
	}
}

// TestReadersThatDontRead: connections of clients that ask much and read nothing are bounded, and
// end.
func TestReadersThatDontRead(t *testing.T) {
	s := &http.Server{}
	if Limit(s); s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("no limit: %+v", s)
	}
	s.WriteTimeout = 50 * time.Millisecond
	large := make([]byte, 64<<20)
	ended := make(chan error, 1)
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(large)
		ended <- err
	})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(limited(inner, 2, 1, 0)) }()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first, second := dial(), dial()
	if _, err := io.WriteString(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("64 MB were written to somebody who reads nothing")
	}
	_ = second
	for { // the first's place is free at some time, a third beside the two is not
		c := dial()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := c.Read(make([]byte, 1)); err == nil {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-served
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// TestFew: connections over the bound are closed at once, for all of them and for those of one
// address; loopback is all of this machine's.
func TestFew(t *testing.T) {
	l := limited(nil, 4, 2, 0)
	a, b, here := addr("10.0.0.1"), addr("10.0.0.2"), addr("127.0.0.1")
	first, second := l.take(a), l.take(a)
	if !first || !second || l.take(a) {
		t.Error("of one address")
	}
	if !l.take(b) || !l.take(here) || l.take(here) || l.take(b) {
		t.Error("of all")
	}
	l.leave(a)
	if !l.take(here) || l.take(here) {
		t.Error("a place that became free")
	}
	for _, peer := range []string{"10.0.0.1", "10.0.0.2", "127.0.0.1", "127.0.0.1"} {
		l.leave(addr(peer))
	}
	if l.all != 0 || len(l.peers) != 0 {
		t.Errorf("left: %d, %v", l.all, l.peers)
	}
}
