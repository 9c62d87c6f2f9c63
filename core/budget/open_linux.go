package budget

import (
	"net"
	"syscall"
)

// OpenFiles returns how many descriptors the process may have open; 0: not known.
func OpenFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}

// Descriptor returns that of a connection, of which all lower ones are taken; 0: not known.
func Descriptor(c net.Conn) (descriptor int) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { descriptor = int(fd) })
	}
	return descriptor
}
