//go:build unix && !linux

package process

import "syscall"

// attributes: a process group of its own. The lifeline ends the child with the core.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit has no portable form; the group is killed once the child was waited for.
func awaitExit(int) {}
