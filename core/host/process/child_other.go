//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// attributes: a process group of its own. The lifeline ends the child with the core.
func attributes(spec Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential(spec.User)}
}

// awaitExit doesn't wait here: collect does.
func awaitExit(*exec.Cmd) {}

// collect waits for the child and kills what is left of its group.
func (c *child) collect() error {
	err := c.cmd.Wait()
	c.number.free(func(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	return err
}
