package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestDev: with --dev a plugin is swapped when its program changes, and one that can't start
// changes nothing.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	program1, program2 := filepath.Join(dir, "hello"), filepath.Join(dir, "other")
	buildHello(t, dir, map[string]string{program1: "hello.example.com", program2: "other.example.com"})
	set := filepath.Join(dir, "plugins.yaml")
	if err := os.WriteFile(set, []byte("plugins: [{name: hello, kind: registry, insecure: true, process: {command: ./hello}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, "", "--plugins", set, "--dev")
	plane.Ready(t)
	hasService(t, plane, "hello.example.com")
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	rename(t, broken, program1)
	wait.For(t, "the log says that the program was not taken", func() error {
		if !strings.Contains(plane.Log(), "the changed program was not taken") {
			return fmt.Errorf("the log ends with %s", plane.LastLines(3))
		}
		return nil
	})
	hasService(t, plane, "hello.example.com")
	rename(t, program2, program1)
	hasService(t, plane, "other.example.com")
}

// TestDevDuringStart: a program that changes while it starts for the first time is no other case.
func TestDevDuringStart(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	buildHello(t, dir, map[string]string{in("first"): "hello.example.com", in("second"): "other.example.com"})
	place(t, in("hello"), "#!/bin/sh\n: > began\nwhile [ ! -e go ]; do sleep 0.01; done\nexec ./first\n")
	place(t, in("next"), "#!/bin/sh\nexec ./second\n")
	for _, script := range []string{"hello", "next"} {
		if err := os.Chmod(in(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	place(t, in("plugins.yaml"), "plugins: [{name: hello, kind: registry, insecure: true, process: {command: ./hello}, guard: {maxRemoved: 100%}}]\n")
	plane := mesh.Start(t, program, "", "--plugins", in("plugins.yaml"), "--dev")
	wait.For(t, "the program runs", func() error { _, err := os.Stat(in("began")); return err })
	rename(t, in("next"), in("hello"))
	place(t, in("go"), "")
	plane.Ready(t)
	hasService(t, plane, "other.example.com")
}

// TestDevLeavesSwapsAlone: a swap for another program is no change of the program; a change of that
// one is.
func TestDevLeavesSwapsAlone(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	buildHello(t, dir, map[string]string{in("hello"): "hello.example.com", in("other"): "other.example.com", in("third"): "third.example.com"})
	b := newBenchIn(t, dir, "plugins: [{name: hello, kind: registry, insecure: true, process: {command: ./hello}, guard: {maxRemoved: 100%}}]\n", "--dev")
	hasService(t, b.plane, "hello.example.com")
	b.must("switched", "swap", "hello", "--process", "./other")
	hasService(t, b.plane, "other.example.com")
	rename(t, in("third"), in("other"))
	hasService(t, b.plane, "third.example.com")
	if n := strings.Count(b.plane.Log(), "the plugin's program has changed"); n != 1 {
		t.Errorf("a program changed once, and the log says so %d times:\n%s", n, b.plane.Log())
	}
}

// buildHello builds examples/registry-hello once for each path, with a host of its own.
func buildHello(t *testing.T, dir string, hosts map[string]string) {
	t.Helper()
	source, err := os.ReadFile("../../examples/registry-hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for path, host := range hosts {
		file := filepath.Join(dir, host, "main.go")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(source), "hello.example.com", host)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", path, file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// hasService waits until a service is there.
func hasService(t *testing.T, plane *mesh.Plane, host string) {
	t.Helper()
	wait.For(t, host, func() error {
		if page, err := plane.Get("/debug/services"); err != nil || !strings.Contains(page, host) {
			return fmt.Errorf("%v: %s", err, page)
		}
		return nil
	})
}
