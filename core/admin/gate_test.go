package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/xds"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
}, NamespaceOf: func(n *corev3.Node) string {
	namespace, _, _ := strings.Cut(n.GetId(), "/")
	return namespace
}, Short: func(n *corev3.Node) string {
	_, name, _ := strings.Cut(n.GetId(), "/")
	return name
}}

// fleet is a twin with nodes NAMESPACE/NAME.
type fleet struct{ twin }

func (fleet) Streamed() (all []xds.StreamStatus) {
	for i, id := range []string{"shop/web", "bank/vault", "bank/till"} {
		all = append(all, xds.StreamStatus{Node: id, Connection: uint64(i + 1), Client: &corev3.Node{Id: id}})
	}
	// A client of shop says that it is a node of bank.
	return append(all, xds.StreamStatus{Node: "bank/till", Connection: 9, Client: &corev3.Node{Id: "shop/till"}})
}

func (fleet) Streams() (all []Stream) {
	for _, st := range (fleet{}).Streamed() {
		all = append(all, Stream{Node: st.Node, Connection: st.Connection})
	}
	return all
}

func (fleet) Dump(node string) ([]TypeDump, bool) { return nil, strings.Contains(node, "/") }

// TestPagesOfOnesOwn: who is no operator sees what proxies of its own namespace have, by their ids
// or as people name them; a page beside the core's own may say so of itself. A page that is on no
// list answers all the same.
func TestPagesOfOnesOwn(t *testing.T) {
	who := func(_ context.Context, s Shown) ([]string, error) {
		return []string{s.Headers.Get("Authorization")}, nil
	}
	tell := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("proxyID")) }
	a, err := New(Config{Source: fleet{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Caller: who, Naming: naming, Pages: []Page{
		{Path: "/debug/own", About: "own", Own: true, Serve: tell}, {Path: "/debug/any", Serve: tell},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		caller, path string
		code         int
		text         string
	}{
		{"shop/web", "/debug/config_dump?proxyID=shop/web", 200, "configs"},
		{"shop/web", "/debug/config_dump?proxyID=web", 200, "configs"},
		{"shop/web", "/debug/own?proxyID=web", 200, "shop/web"},
		{"operators/admin", "/debug/own?proxyID=vault", 200, "bank/vault"},
		{"operators/admin", "/debug/any?proxyID=nobody", 200, "nobody"},
		{"operators/admin", "/debug/config_dump?proxyID=nobody", 404, "not connected"},
		{"shop/web", "/debug/own?proxyID=vault", 404, "may see"},
		{"shop/web", "/debug/config_dump?proxyID=bank/vault", 404, "may see"},
		{"shop/web", "/debug/own?proxyID=web&proxyID=vault", 200, "shop/web"},
		{"shop/web", "/debug/config_dump?proxyID=bank/till", 404, "may see"},
		{"bank/till", "/debug/config_dump?proxyID=bank/till", 404, "may see"},
		{"operators/admin", "/debug/config_dump?proxyID=bank/till", 200, "configs"},
		{"shop/web", "/debug/ledger?proxyID=vault", 404, "may see"},
		{"shop/web", "/debug/explain?proxyID=vault", 404, "may see"},
		{"shop/web", "/debug/explain?proxyID=web&type=cds&name=a", 404, "it has none"},
		{"shop/web", "/debug/own", 400, "proxyID"},
		{"shop/web", "/debug/any?proxyID=web", 403, "operators"},
		{"shop/web", "/debug/plugins", 403, "operators"},
		{"shop/web", "/debug/pushes", 403, "operators"},
		{"shop/web", "/debug/nodes", 403, "operators"},
		{"nobody", "/debug/own?proxyID=web", 404, "may see"},
		{"operators/admin", "/debug/list", 200, `"own"`},
	} {
		r := httptest.NewRequest("GET", "http://10.0.0.5"+c.path, nil)
		r.RemoteAddr = "10.0.0.9:4000"
		r.Header.Set("Authorization", c.caller)
		w := httptest.NewRecorder()
		if a.HTTP().ServeHTTP(w, r); w.Code != c.code || !strings.Contains(w.Body.String(), c.text) || strings.Contains(w.Body.String(), `"any"`) {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// TestListsOfOnesOwn: lists of proxies have for each caller those that it may see.
func TestListsOfOnesOwn(t *testing.T) {
	who := func(_ context.Context, s Shown) ([]string, error) {
		return []string{s.Headers.Get("Authorization")}, nil
	}
	a, err := New(Config{Source: fleet{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Caller: who, Naming: naming})
	if err != nil {
		t.Fatal(err)
	}
	if who := ofScope(asker{}.scope()); who.system || a.cfg.shown(who, xds.StreamStatus{Client: &corev3.Node{}}) {
		t.Errorf("who is nobody sees %+v", who)
	}
	for caller, want := range map[string][]uint64{"shop/web": {1, 9}, "bank/clerk": {2, 3}, "other/a": nil, "operators/admin": {1, 2, 3, 9}} {
		for _, path := range []string{"/debug/streams", "/debug/ledger"} {
			r := httptest.NewRequest("GET", "http://10.0.0.5"+path, nil)
			r.RemoteAddr = "10.0.0.9:4000"
			r.Header.Set("Authorization", caller)
			w := httptest.NewRecorder()
			a.HTTP().ServeHTTP(w, r)
			var got []uint64
			for _, m := range regexp.MustCompile(`"connection": (\d+)`).FindAllStringSubmatch(w.Body.String(), -1) {
				n, err := strconv.ParseUint(m[1], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, n)
			}
			if slices.Sort(got); w.Code != http.StatusOK || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d, connections %v, want %v", caller, path, w.Code, got, want)
			}
		}
		var g Glance
		of := asker{system: caller == "operators/admin", namespaces: naming.Namespaces([]string{caller})}
		if err := json.Unmarshal(a.cfg.glance(of.scope()), &g); err != nil {
			t.Fatal(err)
		}
		if g.Proxies != len(want) || (len(g.Own) == 0) != (caller == "operators/admin") {
			t.Errorf("%s sees %+v at first glance", caller, g)
		}
	}
}

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
	for _, path := range []string{
		"/debug", "/debug/list", "/debug/plugins", "/debug/configs", "/debug/config_dump?proxyID=a",
		"/debug/rowz?table=mesh", "/debug/pprof/",
		"/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline",
	} {
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
			if c.token == "shop" && strings.HasPrefix(path, "/debug/config_dump") {
				c.code = 404 // there is no such proxy in its namespace
			}
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
	h := g.debug(Page{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
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

// TestPagesOfOthersAtOnce: callers of one namespace, however slowly they read, leave room for
// operators.
func TestPagesOfOthersAtOnce(t *testing.T) {
	g := newGate(Config{Naming: naming, Caller: func(_ context.Context, s Shown) ([]string, error) {
		return []string{s.Headers.Get("Authorization")}, nil
	}})
	entered, leave := make(chan struct{}, atOnce), make(chan struct{})
	h := g.debug(Page{Own: true}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	done := make(chan struct{})
	ask := func(caller string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "http://10.0.0.5/debug/x", nil)
		r.RemoteAddr = "10.0.0.9:4000"
		r.Header.Set("Authorization", caller)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	begin := func(caller string) {
		go func() {
			ask(caller)
			done <- struct{}{}
		}()
		<-entered
	}
	for range ofOthers {
		begin("shop/web")
	}
	if w := ask("bank/till"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more of others: %d", w.Code)
	}
	for range atOnce - ofOthers {
		begin("operators/admin")
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
	go func() { served <- s.Serve(budget.Places{Most: 2, OfAddress: 1, Local: true}.Bound(inner)) }()
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
