package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin/login"
	"github.com/coxswain-mesh/coxswain/core/audit"
)

// TestPage: from the page nothing can be run that plugins.yaml has not: no order names a program, a
// file or a config, and what commands may do besides is not there.
func TestPage(t *testing.T) {
	h := (&Server{Holds: &kept{}, Pins: &pinning{}}).Page()
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", "/plugins/files/restart", `{"process":["/bin/sh"]}`, 400, "unknown field"},
		{"POST", "/plugins/files/restart", `{"wasm":"/tmp/a.wasm"}`, 400, "unknown field"},
		{"POST", "/plugins/files/rollback", `{"builtin":"config/file"}`, 400, "unknown field"},
		{"POST", "/plugins/files/enable", `{"config":"dir: /etc","configFile":"/etc/passwd"}`, 400, "unknown field"},
		{"POST", "/plugins/files/disable", `{"ephemeral":true}`, 400, "unknown field"},
		{"POST", "/plugins/files/disable", `x`, 400, "invalid"},
		{"POST", "/plugins/files/swap", `{"process":["/bin/sh"]}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"wasm":"/tmp/a.wasm","dryRun":true}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"builtin":"config/file"}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"plugin":"oci://evil.example/a:1"}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"config":"dir: /etc"}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"configFile":"/etc/passwd"}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"disabled":true}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"ephemeral":true}`, 400, "unknown field"},
		{"POST", "/plugins/files/swap", `{"file":"/etc/plugins.yaml"}`, 400, "unknown field"},
		{"GET", "/plugins/files/swap", ``, 405, ""},
		{"POST", "/plugins/files/record", `{}`, 404, ""},
		{"POST", "/plan", `{}`, 404, ""},
		{"POST", "/ui/code", `{}`, 404, ""},
		{"GET", "/audit", ``, 404, ""},
		{"PUT", "/log", `{}`, 404, ""},
		{"POST", "/holds/files/apply", `{}`, 200, "files"},
		{"POST", "/pins", `{"revision":8,"file":"x"}`, 400, "unknown field"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
}

// TestCode: whoever asks at the socket gets a code by its own name, where the page may change
// something.
func TestCode(t *testing.T) {
	uid := 1000
	ask := func(s *Server) (is Login) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/ui/code", nil)
		s.code(w, r.WithContext(audit.With(r.Context(), audit.Who{By: audit.ByCommand, UID: &uid, User: "ann", PID: 7, Command: "coxswain"})))
		if err := json.Unmarshal(w.Body.Bytes(), &is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	if is := ask(&Server{}); is != (Login{}) {
		t.Errorf("without actions: %+v", is)
	}
	s := &Server{Logins: login.New()}
	e, ok := s.Logins.Enter(ask(s).Code)
	if want := "ann (uid 1000) by coxswain 7, on the page"; !ok || e.Who.String() != want {
		t.Errorf("%v %s", ok, e.Who)
	}
	for range 50 {
		if is := ask(s); is.Error != "" {
			return
		}
	}
	t.Error("codes are not bounded")
}
