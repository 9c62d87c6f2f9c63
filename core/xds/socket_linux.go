package xds

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// prepare sets what gRPC would set itself if it could see the socket: how long what was sent may go without an answer. It returns the connection's
// descriptor, of which all lower ones are taken.
func prepare(c net.Conn, timeout time.Duration) (descriptor int) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		descriptor = int(fd)
		_ = unix.SetsockoptInt(descriptor, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
	})
	return descriptor
}

// gone reports whether the peer has ended a connection, though there is more to read.
func gone(c net.Conn) (is bool) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		is = err == nil && info.State != unix.BPF_TCP_ESTABLISHED
	})
	return is || err != nil
}
