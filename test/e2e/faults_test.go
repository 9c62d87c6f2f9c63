package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestPluginsDie kills each plugin that has a process in turn while clients ask all the time. It is
// back by itself, is counted, and an edit made meanwhile arrives.
func TestPluginsDie(t *testing.T) {
	w := newWorld(t, "delta")
	clients := w.traffic(t)
	serving := w.plane.Plugins(t)
	maps.DeleteFunc(serving, func(_ string, p admin.Plugin) bool { return p.State != "serving" })
	for i, name := range slices.Sorted(maps.Keys(serving)) {
		before := w.plane.Signal(t, name, syscall.SIGKILL)
		w.Weight1, w.Weight2 = 100*(i%2), 100*((i+1)%2)
		w.write(t, "routes.yaml")
		for _, target := range w.web("/api") {
			only(t, target, [][]string{{"v2-a"}, {"v1-a", "v1-b"}}[i%2]...)
		}
		wait.For(t, name+" is back", func() error { return back(before, w.plane.Plugins(t)[name]) })
	}
	w.finish(t, clients)
}

func back(before, now admin.Plugin) error {
	if now.State != "serving" || now.Restarts != before.Restarts+1 || now.PID == before.PID || now.Stale {
		return fmt.Errorf("%+v", now)
	}
	return nil
}

// TestCoreDies kills the core: its plugins go with it, and Envoys serve on. When it is back they
// get what changed meanwhile.
func TestCoreDies(t *testing.T) {
	w := newWorld(t, "sotw")
	plugins := w.plane.Plugins(t)
	clients := w.traffic(t)
	w.plane.Kill()
	for name, p := range plugins {
		wait.For(t, name+" has ended", func() error { return gone(p.PID) })
	}
	w.Weight1, w.Weight2 = 0, 100
	w.write(t, "routes.yaml")
	w.plane = w.plane.Again(t)
	for _, target := range w.web("/api") {
		only(t, target, "v2-a")
	}
	w.finish(t, clients)
}

// gone returns an error while a process of ours is alive.
func gone(pid int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.HasPrefix(string(b), program) {
		return nil
	}
	return fmt.Errorf("pid %d runs %q", pid, b)
}

// TestStop stops the program: it ends well, with its plugins, and leaves nothing behind.
func TestStop(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", tmp)
	plane := mesh.Start(t, program, t.TempDir())
	plane.Ready(t)
	plugins := plane.Plugins(t)
	if len(plugins) == 0 {
		t.Error("no plugins")
	}
	if code := plane.Stop(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, plane.LastLines(20))
	}
	for name, p := range plugins {
		if err := gone(p.PID); err != nil {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	_ = filepath.WalkDir(tmp, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.Type()&os.ModeSocket != 0 {
			t.Errorf("a socket is left: %s", path)
		}
		return nil
	})
}

// TestBrokenFile breaks one file of several: the others' edits still arrive, what was good in the
// broken one stays served, and the place is named.
func TestBrokenFile(t *testing.T) {
	w := newWorld(t, "sotw")
	clients := w.traffic(t)
	place(t, filepath.Join(w.dir, "broken.yaml"), "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x\n")
	w.Shop = []*mesh.Backend{mesh.NewBackend(t, "shop")}
	w.write(t, "shop.yaml")
	only(t, w.shop()[0], "shop")
	named(t, w, "broken.yaml:")

	// An unknown field in the second of two documents.
	text, err := os.ReadFile(filepath.Join(w.dir, "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(w.dir, "shop.yaml"), strings.Replace(string(text), "  gateways: [gateway]", "  gatewayz: [gateway]", 1))
	named(t, w, "shop.yaml:18:")
	w.Weight1, w.Weight2 = 0, 100
	w.write(t, "routes.yaml")
	for _, target := range w.web("/api") {
		only(t, target, "v2-a")
	}
	only(t, w.shop()[0], "shop")
	w.finish(t, clients)
}

// named waits until the log names a place.
func named(t *testing.T, w *world, place string) {
	t.Helper()
	wait.For(t, "the log names "+place, func() error {
		if !strings.Contains(w.plane.Log(), place) {
			return fmt.Errorf("log:\n%s", w.plane.LastLines(10))
		}
		return nil
	})
}
