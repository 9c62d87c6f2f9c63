// Package demo runs examples/demo by `make run`, as a user does: it waits until the demo says what
// to try, tries that, and ends it.
package demo

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/makerun"
)

var demo = makerun.Demo{Target: "run", Variable: "DEMO_DIR", Before: take, During: try, After: gone, Steps: []string{
	"1/3 building the control plane", "  done", "2/3 building", "  done", "3/3 Envoy ",
	"127.0.0.1:8080 is taken: pages is at 127.0.0.1:8081", "127.0.0.1:7080 is taken: gateway is at 127.0.0.1:7082",
	"127.0.0.1:9101 is taken: backend v1 is at 127.0.0.1:9103", "starting two backends",
	"waiting until the control plane serves", "starting an ingress gateway", "waiting until the sidecar serves",
	"Ctrl-C stops everything", "stopping",
}}

func TestMain(m *testing.M) {
	demo.Main()
	os.Exit(m.Run())
}

// taken are ports that somebody else has: three of the demo's, and one after them.
var taken = []string{"127.0.0.1:8080", "127.0.0.1:7080", "127.0.0.1:7081", "127.0.0.1:9101"}

// take listens at them for as long as the process lives.
func take() error {
	for _, at := range taken {
		if _, err := net.Listen("tcp", at); err != nil {
			return err
		}
	}
	return nil
}

// TestDemo: make run says what it does, one step after the other, and what it says then is so,
// where ports are taken, too.
func TestDemo(t *testing.T) { demo.Run(t) }

// TestDuring: while a step takes long there is another line every now and then; how it ended is
// said, too, and is the status.
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
		if said, err := makerun.Until(lines, "still at it"); err != nil {
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
