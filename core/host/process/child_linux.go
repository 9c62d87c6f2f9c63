package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: a process group of its own, so that a terminal's Ctrl-C reaches the core alone; and death with the core, the quick
// way. The lifeline is the sure one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until a child has ended, without taking its number from it.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
