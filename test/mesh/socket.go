package mesh

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// Socket is a Relay to the xDS port.
func (p *Plane) Socket(t testing.TB, path string) string {
	t.Helper()
	return Relay(t, path, func() string { return p.XDS })
}

// Relay listens on a Unix socket and passes connections on to the TCP address that to returns for each: proxies in network namespaces of their own reach no
// other. Its address, unix:PATH, is for `coxswain bootstrap --xds`.
func Relay(t testing.TB, path string, to func() string) string {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil { // proxies may run as other users
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { join(down, to()) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); ended.Wait() })
	return "unix:" + path
}

// join carries bytes both ways until one side ends.
func join(down net.Conn, address string) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(down, up); _ = down.Close() })
	_, _ = io.Copy(up, down)
	_ = up.Close()
	back.Wait()
}
