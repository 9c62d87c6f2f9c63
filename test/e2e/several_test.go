package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestSeveralCores: with two on one machine a command finds the one that an address names, by each
// of its ports; without a name it lists them.
func TestSeveralCores(t *testing.T) {
	b := newBench(t, swapSet)
	other := mesh.Start(t, program, "", "--plugins", b.file)
	other.Ready(t)
	for _, args := range [][]string{{"show", "istio"}, {"restart", "istio"}, {"log"}, {"record", "istio", "unused"}} {
		text, ok := b.plugins(args...)
		if ok || !strings.Contains(text, "--addr "+b.plane.HTTP) || !strings.Contains(text, "--addr "+other.HTTP) || !strings.Contains(text, b.file) {
			t.Errorf("%v: it does not say what to type:\n%s", args, text)
		}
	}
	restarts := func(at string) int {
		t.Helper()
		text, ok := b.plugins("log", "istio", "--addr", at)
		if !ok {
			t.Fatalf("it failed")
		}
		return strings.Count(text, "istio: restart switched")
	}
	for i, at := range []string{other.HTTP, other.Monitoring, other.XDS} {
		b.must("switched", "restart", "istio", "--addr", at)
		if mine, others := restarts(b.plane.HTTP), restarts(other.HTTP); mine != 0 || others != i+1 {
			t.Errorf("after %s: %d restarts of the one, %d of the other", at, mine, others)
		}
	}
	b.fails("no control plane of this user has a port at 127.0.0.1:1; these run here", "show", "istio", "--addr", "127.0.0.1:1")
	t.Setenv("COXSWAIN_ADDR", other.HTTP)
	b.must("istio: generator", "show", "istio")
	if out, err := exec.Command(program, "hold", "list").CombinedOutput(); err != nil || !strings.Contains(string(out), "nothing is held") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Setenv("COXSWAIN_ADDR", "127.0.0.1:1")
	b.must("restart switched", "log", "istio", "--addr", other.HTTP)
	b.fails("on this machine there run:\n  --addr ")
	b.fails("these run here", "show", "istio")
}
