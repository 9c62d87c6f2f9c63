package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestAccess: who asks for a debug page is logged with what became of it, from elsewhere at info,
// from this machine at debug; not what was asked, and not without bound.
func TestAccess(t *testing.T) {
	var text bytes.Buffer
	a := newAccess(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo})))
	h := a.noted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(*answered).by = []string{"shop"}
		http.Error(w, "no", http.StatusForbidden)
	}))
	ask := func(remote, path string) {
		r := httptest.NewRequest(http.MethodGet, "http://x/debug/plugins?token=hush", nil)
		r.URL.Path, r.RemoteAddr = path, remote
		at, err := net.ResolveTCPAddr("tcp", "127.0.0.1:8080")
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at))))
	}
	ask("127.0.0.1:1", "/debug/plugins")
	if text.Len() > 0 {
		t.Errorf("this machine's question is logged: %s", text.String())
	}
	ask("192.0.2.1:1", "/debug/plugins\nforged")
	var line struct {
		Msg, Method, Path, Remote string
		Status                    int
		Namespaces                []string
	}
	if err := json.Unmarshal(text.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Msg != "page asked for" || line.Status != http.StatusForbidden || line.Remote != "192.0.2.1:1" || line.Method != "GET" ||
		strings.Contains(line.Path, "\n") || fmt.Sprint(line.Namespaces) != "[shop]" || strings.Contains(text.String(), "hush") {
		t.Errorf("%s", text.String())
	}
	for range 10 * accessAtOnce {
		ask("192.0.2.1:1", "/debug/plugins")
	}
	if n := strings.Count(text.String(), "\n"); n > 3*accessAtOnce {
		t.Errorf("%d lines", n)
	}
}

// TestAccessOfAll: what is followed is logged when it begins, and so is what is refused or not
// there.
func TestAccessOfAll(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := New(Config{Source: twin{}, Registry: prometheus.NewRegistry(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := a.Monitoring()
	for _, c := range []struct{ method, path, want string }{
		{http.MethodPost, "/ui/do/plugins/a/swap", `"status":403`}, {http.MethodGet, "/debug/nothing", `"status":404`},
	} {
		text.Reset()
		r := here(c.path)
		r.Method = c.method
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !strings.Contains(text.String(), c.want) || !strings.Contains(text.String(), `"path":"`+c.path+`"`) {
			t.Errorf("%s: %s", c.path, text.String())
		}
	}
	text.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	r := here("/ui/events")
	r = r.WithContext(context.WithValue(ctx, http.LocalAddrContextKey, r.Context().Value(http.LocalAddrContextKey)))
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), r)
	if begins, ends := strings.Index(text.String(), `"page is followed"`), strings.Index(text.String(), `"page asked for"`); begins < 0 || ends < begins {
		t.Error(text.String())
	}
}

// TestFramed: no answer of either port may be framed, read by another origin, or taken for another
// type than it says.
func TestFramed(t *testing.T) {
	a := start(t, twin{})
	for _, c := range []struct {
		h    http.Handler
		path string
	}{
		{a.HTTP(), "/ready"}, {a.HTTP(), "/debug"}, {a.HTTP(), "/debug/pprof/"}, {a.HTTP(), "/debug/plugins"}, {a.HTTP(), "/debug/nothing"},
		{a.Monitoring(), "/metrics"}, {a.Monitoring(), "/version"}, {a.Monitoring(), "/debug/streams"}, {a.Monitoring(), "/ui/"},
		{a.Monitoring(), "/ui/session"}, {a.Monitoring(), "/nothing"},
	} {
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, here(c.path))
		if !strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", c.path, w.Header().Get("Content-Security-Policy"))
		}
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", c.path, name, got)
			}
		}
	}
}
