package process

import (
	"os"
	"syscall"
)

// credential is who a child runs as; nil: as the core.
func credential(u *User) *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// uid is the user that the child runs as.
func (c *child) uid() int {
	if as := c.cmd.SysProcAttr.Credential; as != nil {
		return int(as.Uid)
	}
	return os.Geteuid()
}
