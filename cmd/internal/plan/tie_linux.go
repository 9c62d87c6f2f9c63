package plan

import (
	"os/exec"
	"syscall"
)

// tie has a control plane end with this process, however that ends.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
