package budget

import (
	"net"
	"net/netip"
	"sync"
)

// Places bounds the connections of a port of HTTP.
type Places struct {
	// Most is how many connections there may be at once, OfAddress how many of them one address may
	// have (as Address counts them).
	Most, OfAddress int
	// Files is how many descriptors may be open while connections are let in; 0: no bound.
	Files int
	// Local is whether loopback addresses have no bound of their own, for all of a machine share
	// them.
	Local bool
}

// Bound returns a listener that closes at once the connections for which there is no place. Those
// that are there keep theirs.
func (p Places) Bound(l net.Listener) net.Listener { return newPlaced(l, p) }

type placed struct {
	net.Listener
	bounds Places

	mu sync.Mutex
	// all is how many connections there are, by how many of each address.
	all int
	by  map[string]int
}

func newPlaced(l net.Listener, bounds Places) *placed {
	return &placed{Listener: l, bounds: bounds, by: map[string]int{}}
}

// Accept implements net.Listener.
func (p *placed) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		remote := c.RemoteAddr().String()
		if CheckFiles(Descriptor(c), p.bounds.Files) == nil && p.enter(remote) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { p.leave(remote) })}, nil
		}
		_ = c.Close()
	}
}

// enter reports whether there was a place for a connection, which has it then.
func (p *placed) enter(remote string) bool {
	who := Address(remote)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.bounds.Most || p.by[who] >= p.bounds.OfAddress && !(p.bounds.Local && loopback(remote)) {
		return false
	}
	p.all++
	p.by[who]++
	return true
}

func (p *placed) leave(remote string) {
	who := Address(remote)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.by[who]--; p.by[who] == 0 {
		delete(p.by, who)
	}
}

func loopback(remote string) bool {
	a, err := netip.ParseAddrPort(remote)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
