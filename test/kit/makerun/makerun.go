// Package makerun runs a demo by make, as a user does, in a network namespace of its own, because
// the demo's ports are fixed: it waits until the demo says how to end it, does what the test does
// beside it, and ends it.
package makerun

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// visits is the first argument of a test binary that is to run a demo; ready is what a demo says
// last before it serves.
const visits, ready = "visit", "Ctrl-C stops everything."

// Demo is what Run runs.
type Demo struct {
	// Target is make's, Variable the one that names the directory that the demo writes into.
	Target, Variable string
	// Before, if it isn't nil, is called first, in the network namespace of the demo.
	Before func() error
	// During is called once the demo serves, with what it has said, the repository and the demo's
	// directory; After, if it isn't nil, once the demo has ended.
	During func(said, root, dir string) error
	After  func(said string) error
	// Steps are what the demo says, in this order.
	Steps []string
}

// Main comes first in TestMain of a package that uses Run. In a process that Run started it doesn't
// return.
func (d Demo) Main() {
	netns.Main()
	if len(os.Args) != 4 || os.Args[1] != visits {
		return
	}
	if err := d.visit(os.Args[2], os.Args[3]); err != nil {
		fmt.Println("not as the demo says:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run runs the demo. The test fails where something is not as the demo says, or During or After
// returns an error. It needs make and Envoy, and is skipped without them.
func (d Demo) Run(t *testing.T) {
	t.Helper()
	envoy.Binary(t)
	if _, err := exec.LookPath("make"); err != nil {
		need.Missing(t, "no make, which runs the demo: install it")
	}
	mesh.RuntimeDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "served")
	cmd := netns.Command(t, self, visits, envoy.Root(t), dir)
	// What a make around this test says to its own children is not for this one.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
		logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		for _, log := range logs {
			b, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-4000):])
		}
	}
	for rest, i := string(out), 0; i < len(d.Steps); i++ {
		var found bool
		if _, rest, found = strings.Cut(rest, d.Steps[i]); !found {
			t.Fatalf("it does not say %q where it should", d.Steps[i])
		}
	}
}

// visit runs the demo and what goes with it.
func (d Demo) visit(root, dir string) error {
	if d.Before != nil {
		if err := d.Before(); err != nil {
			return err
		}
	}
	cmd := exec.Command("make", "--no-print-directory", "-C", root, d.Target, d.Variable+"="+dir)
	cmd.Stderr = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	said, err := Until(lines, ready)
	var rest []byte
	var read sync.WaitGroup
	read.Go(func() { rest, _ = io.ReadAll(lines) }) // a pipe that nobody reads would stop the demo
	if err == nil {
		err = d.During(said, root, dir)
	}
	if err == nil {
		err = cmd.Process.Signal(syscall.SIGTERM)
	} else {
		_ = cmd.Process.Kill()
	}
	read.Wait()
	fmt.Printf("%s%s", said, rest)
	_ = cmd.Wait() // make ends by the signal that ends what it runs
	if err != nil || d.After == nil {
		return err
	}
	return d.After(said)
}

// Until reads lines, up to one with these words, and returns what was read.
func Until(r *bufio.Reader, words string) (said string, err error) {
	for !strings.Contains(said, words) {
		line, err := r.ReadString('\n')
		said += line
		if err != nil {
			return said, fmt.Errorf("it ended before it said %q: %w", words, err)
		}
	}
	return said, nil
}
