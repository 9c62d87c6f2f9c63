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
