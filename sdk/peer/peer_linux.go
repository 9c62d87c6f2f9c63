package peer

import (
	"net"

	"golang.org/x/sys/unix"
)

// Of returns who is at the other end of a connection; known is false where it isn't a Unix socket
// (SO_PEERCRED, unix(7)).
func Of(c net.Conn) (p Peer, known bool) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}, false
	}
	var cred *unix.Ucred
	if raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return Peer{}, false
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid)}, true
}
