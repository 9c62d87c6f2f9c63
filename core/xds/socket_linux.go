package xds

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// prepare sets what gRPC would set itself if it could see the socket: how long what was sent may go
// without an answer.
func prepare(c net.Conn, timeout time.Duration) {
	s, ok := c.(tcp)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
		})
	}
}

// gone reports whether the peer has ended a connection, though there is more to read.
func gone(c net.Conn) (is bool) {
	s, ok := c.(tcp)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		is = err == nil && info.State != unix.BPF_TCP_ESTABLISHED
	})
	return is || err != nil
}
