package mesh

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Socket is a Relay to the xDS port.
func (p *Plane) Socket(t testing.TB, path string) string {
	t.Helper()
	return NewRelay(t, path, func() string { return p.XDS }).Address
}

// Relay passes connections on, from a Unix socket (proxies in network namespaces of their own reach
// no other) or a port, and counts bytes.
type Relay struct {
	// Address: unix:PATH, as `coxswain bootstrap --xds` takes it, or that of a port.
	Address string

	down atomic.Int64
}

// Down is how many bytes went to those that connected.
func (r *Relay) Down() int64 { return r.down.Load() }

// NewRelay listens on a Unix socket and passes connections on to the TCP address that to returns
// for each.
func NewRelay(t testing.TB, path string, to func() string) *Relay {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil { // proxies may run as other users
		t.Fatal(err)
	}
	return relay(t, l, "unix:"+path, to)
}

// NewPortRelay listens on a port of loopback and passes connections on to a TCP address.
func NewPortRelay(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return relay(t, l, l.Addr().String(), func() string { return to })
}

// relay passes connections on until the test's end.
func relay(t testing.TB, l net.Listener, address string, to func() string) *Relay {
	r := &Relay{Address: address}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { r.join(down, to()) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); ended.Wait() })
	return r
}

// join carries bytes both ways until one side ends.
func (r *Relay) join(down net.Conn, address string) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(io.MultiWriter(down, counter{&r.down}), up); _ = down.Close() })
	_, _ = io.Copy(up, down)
	_ = up.Close()
	back.Wait()
}

// counter counts bytes.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
