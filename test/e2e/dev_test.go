package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// TestDev: with --dev a plugin is swapped when its program changes, and one that can't start changes nothing.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	program1, program2 := filepath.Join(dir, "hello"), filepath.Join(dir, "other")
	source, err := os.ReadFile("../../examples/registry-hello/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for path, host := range map[string]string{program1: "hello.example.com", program2: "other.example.com"} {
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
		if page, err := plane.Get("/debug/registryz"); err != nil || !strings.Contains(page, host) {
			return fmt.Errorf("%v: %s", err, page)
		}
		return nil
	})
}
