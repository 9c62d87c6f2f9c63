package host

import (
	"net"

	"golang.org/x/sys/unix"
)

// roomFor has a socket keep so many bytes for who reads it, or as many as the kernel allows.
func roomFor(c *net.UDPConn, bytes int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
		}
	})
}
