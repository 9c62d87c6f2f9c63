package host

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// A module is run by a runner that gets the bytes that were hashed, the defaults, and no more of
// the environment than is allowed.
func TestRunner(t *testing.T) {
	dir := t.TempDir()
	code := []byte("\x00asm")
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Parse(filepath.Join(dir, "plugins.yaml"), fmt.Appendf(nil, `
plugins:
  - {name: a, kind: patch, wasm: {path: m.wasm, sha256: %x, memory: 16Mi, allow: {env: [A], http: ["*.example.org"]}}}
  - {name: b, kind: patch, insecure: true, wasm: {path: m.wasm}, allow: {clock: true}}
  - {name: c, kind: patch, insecure: true, wasm: {path: none.wasm}}
  - {name: d, kind: patch, wasm: {path: m.wasm, sha256: %064d}}
`, sha256.Sum256(code), 0))
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{
		Set: set, Exe: "/exe", RuntimeDir: filepath.Join(dir, "run"), Environ: []string{"A=1", "B=2"},
		Sessions: &sessions{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, release, err := h.launcher.launch(set.Plugins[0])
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	got, err := spec.Parse(l.Args[1:])
	if err != nil || l.Args[0] != spec.Command || l.Path != "/exe" || l.TLS || strings.Join(l.Env, " ") != "A=1" {
		t.Errorf("it runs %+v: %v", l, err)
	}
	if got.File != "m.wasm" || got.Memory != 16<<20 || got.Instances != spec.DefaultInstances || got.Cache != filepath.Join(dir, "run", "wasm") {
		t.Errorf("the runner gets %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" { // where it gets the file open; this process has it under another number
		if got.Module != process.Inherited(0, l.Program != nil) || len(l.Files) != 1 {
			t.Fatalf("the runner reads %s, and gets %v", got.Module, l.Files)
		}
		if read, err := io.ReadAll(l.Files[0]); err != nil || string(read) != string(code) {
			t.Errorf("the runner reads %q, %v", read, err)
		}
	}
	if g := string(grants(set.Plugins[0])); g != `{"http":["*.example.org"],"env":["A"]}` {
		t.Errorf("grants %s", g)
	}
	if g := string(grants(set.Plugins[1])); g != `{"clock":true}` {
		t.Errorf("grants %s", g)
	}
	for n, want := range map[int]string{2: "none.wasm does not exist", 3: "is not what plugins.yaml pins"} {
		if _, _, err := h.launcher.launch(set.Plugins[n]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
