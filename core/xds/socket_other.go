//go:build !linux

package xds

import (
	"net"
	"time"
)

func prepare(net.Conn, time.Duration) {}

// gone is found out by reading.
func gone(net.Conn) bool { return false }
