// Package demo runs examples/demo by `make run`, as a user does: it waits until the demo says what to try, tries that, and ends it. The demo's
// ports are fixed, so that it has a network namespace of its own.
package demo

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/netns"
)

func TestMain(m *testing.M) {
	netns.Main()
	if len(os.Args) > 2 && os.Args[1] == "visit" {
		visit(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// TestDemo: make run says what it does, one step after the other, and what it says then is so.
func TestDemo(t *testing.T) {
	envoy.Binary(t)
	root, dir := envoy.Root(t), t.TempDir()
	if _, err := exec.LookPath("make"); err != nil {
		need.Missing(t, "no make, which runs the demo: install it")
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
	cmd := netns.Command(t, self, "visit", filepath.Join(served, "config", "routes.yaml"), "make", "--no-print-directory", "-C", root, "run", "DEMO_DIR="+served)
	// What a make around this test says to its own children is not for this one.
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+short, "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=")
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
		logs, _ := filepath.Glob(filepath.Join(served, "*.log"))
		for _, log := range logs {
			b, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-4000):])
		}
	}
	for _, step := range []string{
		"1/3 building the control plane", "  done", "2/3 building", "  done", "3/3 Envoy ", "starting two backends", "waiting until the control plane serves",
		"starting an ingress gateway", "waiting until the sidecar serves", "Ctrl-C stops everything", "stopping",
	} {
		_, rest, found := strings.Cut(out, step)
		if !found {
			t.Fatalf("it does not say %q where it should", step)
		}
		out = rest
	}
}

// TestDuring: while a step takes long there is another line every now and then; how it ended is said, too, and is the status.
func TestDuring(t *testing.T) {
	script := filepath.Join(envoy.Root(t), "examples/demo/during.sh")
	fifo := filepath.Join(t.TempDir(), "end")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cmd := exec.Command(script, "fetching", "bash", "-c", "echo here; cat "+fifo+" >/dev/null")
	cmd.Env = append(os.Environ(), "DURING_EVERY=0.05")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	for range 2 { // the command can't end before
		if said, err := until(lines, "still at it"); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	if err := os.WriteFile(fifo, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || !strings.Contains(string(rest), "done, after") {
		t.Errorf("%v: %s", err, rest)
	}
	out, err := exec.Command(script, "fetching", "bash", "-c", "echo here; exit 3").CombinedOutput()
	if cmd := err.(*exec.ExitError); cmd.ExitCode() != 3 || !strings.HasPrefix(string(out), "fetching\nhere\n  failed") {
		t.Errorf("%v: %s", err, out)
	}
}
