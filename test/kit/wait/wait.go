// Package wait waits in tests for what must become true, and hands out ports.
package wait

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// Deadline is generous: a machine may be busy with other tests.
const Deadline = 4 * time.Minute

// For waits until check returns nil. The test fails with check's last error at the deadline.
func For(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(Deadline)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not true after %v: %s: %v", Deadline, what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Port returns a free port of 127.0.0.1, outside of the range from which the system takes ports for
// connections. No other test that asks here gets it while this process lives.
func Port(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if !reserve(port) {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// Address returns 127.0.0.1 with a free port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}
