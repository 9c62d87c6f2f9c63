package main

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTLSAddresses: commands ask an https:// address by TLS, and believe the authorities that
// COXSWAIN_CA names, and no others.
func TestTLSAddresses(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }))
	t.Cleanup(s.Close)
	good, bad := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "bad.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string][]byte{good: text, bad: []byte("nothing")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]struct {
		code int
		says string
	}{good: {0, "[]"}, bad: {1, "no certificate"}, filepath.Join(t.TempDir(), "none"): {1, "COXSWAIN_CA"}, "": {1, "certificate"}} {
		var out, complaint bytes.Buffer
		code := run(t.Context(), []string{"views", "--addr", s.URL, "-o", "json"}, []string{"COXSWAIN_CA=" + file}, strings.NewReader(""), &out, &complaint)
		if code != want.code || !strings.Contains(out.String()+complaint.String(), want.says) {
			t.Errorf("%q: %d %s%s", file, code, out.String(), complaint.String())
		}
	}
}

// TestRedirection: a code is no argument of a browser, which everybody on the machine sees; it is
// in a file of this user's, even where something else was in its place.
func TestRedirection(t *testing.T) {
	dir := t.TempDir()
	p := &program{environ: []string{"XDG_RUNTIME_DIR=" + dir}}
	name := filepath.Join(dir, "coxswain", "ui.html")
	other := filepath.Join(dir, "other")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		url, err := redirection(p, "http://127.0.0.1:15014/ui/#/login?code=ABC")
		if err != nil || url != "file://"+name {
			t.Fatalf("%q %v", url, err)
		}
		info, err := os.Lstat(name)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), `url=http://127.0.0.1:15014/ui/#/login?code=ABC"`) {
			t.Errorf("%s %v", text, err)
		}
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("it was written through a link")
	}
}
