package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/wait"
)

// hold runs `coxswain hold` and returns what it says.
func hold(t *testing.T, args ...string) string {
	t.Helper()
	out, _ := exec.Command(program, append([]string{"hold"}, args...)...).CombinedOutput() // the exit code says only that something is held
	return string(out)
}

func waitHeld(t *testing.T, words string) {
	t.Helper()
	wait.For(t, "hold list says "+words, func() error {
		if got := hold(t, "list"); !strings.Contains(got, words) {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// TestAccidentsAreHeld: what slips of the hand take away is held under traffic, until it is repaired or let through.
func TestAccidentsAreHeld(t *testing.T) {
	short, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	t.Setenv("XDG_RUNTIME_DIR", short)
	w := newWorld(t, "delta")
	clients := w.traffic(t)
	all := []string{"gateway.yaml", "web.yaml", "routes.yaml"}
	steady := func(n int) {
		for _, target := range w.web("/api") {
			if got := target.Shares(context.Background(), n); got["v1-a"]+got["v1-b"]+got["v2-a"] != n {
				t.Errorf("%s: %v", target, got)
			}
		}
	}
	remove := func(names ...string) {
		for _, name := range names {
			if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, accident := range []struct {
		name string
		do   func()
	}{
		{"all files", func() { remove(all...) }},
		{"the only gateway", func() { remove("gateway.yaml") }},
		{"the only services", func() { remove("web.yaml") }},
		{"the only routes", func() { remove("routes.yaml") }},
		{"the directory, made anew", func() {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(w.dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"a selector mistyped", func() {
			text, err := os.ReadFile(filepath.Join(w.dir, "gateway.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			place(t, filepath.Join(w.dir, "gateway.yaml"), strings.Replace(string(text), "ingressgateway", "ingresgateway", 1))
		}},
	} {
		t.Log(accident.name)
		accident.do()
		waitHeld(t, "files")
		steady(50)
		t.Log(hold(t, "show", "files"))
		w.write(t, all...)
		waitHeld(t, "nothing is held")
		steady(50)
	}
	w.finish(t, clients)
	remove("gateway.yaml")
	waitHeld(t, "files")
	if said := hold(t, "drop", "files"); !strings.Contains(said, "starts anew") {
		t.Errorf("hold drop says %s", said)
	}
	waitHeld(t, "files")
	steady(50)
	if said := hold(t, "apply", "files"); !strings.Contains(said, "goes through") {
		t.Errorf("hold apply says %s", said)
	}
	wait.For(t, "the gateway's port is closed", func() error {
		if got := w.web("/api")[0].Shares(context.Background(), 1); got["v1-a"]+got["v1-b"]+got["v2-a"] > 0 {
			return fmt.Errorf("it answers: %v", got)
		}
		return nil
	})
	waitHeld(t, "nothing is held")
}
