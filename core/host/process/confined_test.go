//go:build linux

package process

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
)

// TestConfined: limits that the kernel does not let the core set for another user are reported,
// once; all else is an error.
func TestConfined(t *testing.T) {
	c := &child{cmd: &exec.Cmd{SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1}}}}
	c.report.Store(&sandbox.Report{})
	for range 2 {
		if err := c.confined(syscall.EPERM); err != nil {
			t.Error(err)
		}
	}
	if lacking := c.report.Load().Lacking; len(lacking) != 1 {
		t.Errorf("reported: %q", lacking)
	}
	if err := c.confined(syscall.EINVAL); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	c.cmd.SysProcAttr.Credential = nil
	if err := c.confined(syscall.EPERM); !errors.Is(err, syscall.EPERM) {
		t.Error("of its own user:", err)
	}
}

// TestEndedChild: what is done to a child that has ended, and whose number may be another's, is
// done to nobody and is no error: that it has ended says why it did not start.
func TestEndedChild(t *testing.T) {
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	c := newChild(Spec{Path: path})
	if err := c.prepare(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c.Stdout())
	<-c.done
	if err := c.confine(); err != nil {
		t.Error("its limits:", err)
	}
	if err := c.Kill(t.Context()); err != nil {
		t.Error("killed:", err)
	}
	if got := c.state(); got != "exit status 0" || c.wasKilled() {
		t.Errorf("it ended with %s", got)
	}
}
