//go:build linux

package process

import (
	"errors"
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
