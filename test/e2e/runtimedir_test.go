package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestRuntimeDirectoryRemoved: a cleaner takes the runtime directory, or the socket alone; commands
// find the core again, and plugins start.
func TestRuntimeDirectoryRemoved(t *testing.T) {
	b := newBench(t, swapSet)
	runtime := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "coxswain")
	for _, c := range []struct {
		name   string
		remove func() error
	}{
		{"all", func() error { return mesh.Remove(runtime) }},
		{"its own", func() error { return each(filepath.Join(runtime, "[0-9]*"), mesh.Remove) }},
		{"the socket", func() error { return each(filepath.Join(runtime, "*", "admin.sock"), os.Remove) }},
		{"another file in its place", func() error {
			return each(filepath.Join(runtime, "*", "admin.sock"), func(path string) error {
				return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid := b.detail("istio").PID
			if err := c.remove(); err != nil {
				t.Fatal(err)
			}
			var said string
			wait.For(t, "the command finds the core", func() error {
				out, ok := b.plugins("restart", "istio")
				if said = out; !ok {
					return fmt.Errorf("%s", out)
				}
				return nil
			})
			if now := b.detail("istio").PID; now == pid {
				t.Errorf("it was not started anew: %s", said)
			}
		})
	}
	pid := b.detail("memory").PID
	if err := mesh.Remove(runtime); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "a plugin that was killed is there again", func() error {
		text, ok := b.plugins("show", "memory", "-o", "json")
		if !ok {
			return fmt.Errorf("%s", text)
		}
		if d := b.detail("memory"); d.PID == pid || d.State != "serving" {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
	if code := b.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(runtime, "[0-9]*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func each(pattern string, do func(string) error) error {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("%s: %v %v", pattern, paths, err)
	}
	for _, path := range paths {
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}
