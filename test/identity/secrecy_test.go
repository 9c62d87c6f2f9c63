package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
)

// TestKeyStaysSecret: the CA's key is in no log, page, metric, environment or command line, and in
// the memory of the CA's process alone.
func TestKeyStaysSecret(t *testing.T) {
	w := start(t, nil)
	certified(t, w.dial(t, w.roots(t, "state/ca.pem")), webToken)
	text, err := os.ReadFile(filepath.Join(w.dir, "state/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "-----END CERTIFICATE-----\n")
	key, _ := pem.Decode([]byte(rest))
	if key == nil || !strings.Contains(key.Type, "PRIVATE KEY") {
		t.Fatal("the file has no key where it should")
	}
	m := leaks.Marks{}
	m.Of("the key", pem.EncodeToMemory(key))
	m["the key's bytes"] = key.Bytes[len(key.Bytes)*2/3 : len(key.Bytes)*2/3+32]
	// The text may be gone from where it was read. The number stays where it signs: words of a
	// big.Int, the lowest first.
	parsed, err := x509.ParsePKCS1PrivateKey(key.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	number := parsed.D.Bytes()
	slices.Reverse(number)
	m["the key's number"] = number[:32]
	clean := func(where string, text []byte) {
		for _, what := range m.In(text) {
			t.Errorf("%s has %s", where, what)
		}
	}
	clean("the log", []byte(w.Log()))
	for path, text := range leaks.Pages(t, w.HTTP, "/debug/rowz?table=trustbundles") {
		clean(path, text)
	}
	look := func(name string, pid int, may bool) {
		clean("what /proc shows of "+name, leaks.Shown(t, pid))
		found, err := leaks.Memory(pid, m)
		switch {
		case errors.Is(err, os.ErrPermission):
			t.Logf("the memory of %s can't be looked at: %v", name, err)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case may && len(found) == 0:
			t.Errorf("%s has no key in its memory: this test can't see it", name)
		case may:
			t.Logf("the memory of %s has %q", name, found)
		case !may && len(found) > 0:
			t.Errorf("the memory of %s has %q", name, found)
		}
	}
	look("the core", w.PID(), false)
	for name, p := range w.Plugins(t) {
		if p.PID != 0 {
			look(name, p.PID, name == "ca")
		}
	}
}
