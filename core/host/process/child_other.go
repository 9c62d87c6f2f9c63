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

// awaitExit doesn't wait here: waitGroup does.
func awaitExit(*exec.Cmd) {}

// waitGroup waits for a child and kills what is left of its group.
func waitGroup(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}
