package process

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a process group of its own, so that a terminal's Ctrl-C reaches the core alone; and
// death with the core, the quick way. The lifeline is the sure one.
func attributes(spec Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: credential(spec.User)}
	if spec.Group != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(spec.Group.Fd())
	}
	return a
}

// awaitExit waits until a child has ended, and leaves its number taken.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// collect collects the child, which has ended, and kills what is left of its group: before the
// child's number is free to be used again.
func (c *child) collect() (err error) {
	c.number.free(func(pid int) {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		err = c.cmd.Wait()
	})
	return err
}
