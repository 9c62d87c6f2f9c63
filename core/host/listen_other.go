//go:build !linux

package host

import "net"

// roomFor has a socket keep so many bytes for who reads it, or as many as the system allows.
func roomFor(c *net.UDPConn, bytes int) { _ = c.SetReadBuffer(bytes) }
