// Package demo runs examples/demo, what `make run` runs, as a user does: it waits until the demo says what to try, tries that, and ends it. The demo's
// ports are fixed, so that it has a network namespace of its own.
package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/netns"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	netns.Main()
	if len(os.Args) > 2 && os.Args[1] == "visit" {
		visit(os.Args[2], os.Args[3:])
		return
	}
	mesh.Main(&program, m.Run)
}

func TestDemo(t *testing.T) {
	binary, root, dir := envoy.Binary(t), envoy.Root(t), t.TempDir()
	build := func(name, source string, environ ...string) string {
		file := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-o", file, "./"+source)
		cmd.Dir, cmd.Env = root, append(os.Environ(), environ...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return file
	}
	build("patch-header.wasm", "examples/patch-header", "GOOS=wasip1", "GOARCH=wasm")
	text, err := os.ReadFile(filepath.Join(root, "examples/demo/plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	here := strings.Replace(string(text), "path: ../../.cache/patch-header.wasm", "path: patch-header.wasm", 1)
	if here == string(text) {
		t.Fatal("the demo's plugins.yaml names no ../../.cache/patch-header.wasm, which make run builds")
	}
	if err := os.WriteFile(filepath.Join(dir, "plugins.yaml"), []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	served := filepath.Join(dir, "served")
	cmd := netns.Command(t, self, "visit", filepath.Join(served, "config", "routes.yaml"),
		build("demo", "examples/demo"), "-coxswain", program, "-envoy", binary, "-backend", build("backend", "examples/demo/backend"),
		"-config", filepath.Join(root, "examples/demo/config"), "-plugins", filepath.Join(dir, "plugins.yaml"), "-dir", served)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+short)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
		logs, _ := filepath.Glob(filepath.Join(served, "*.log"))
		for _, log := range logs {
			b, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-4000):])
		}
	}
}
