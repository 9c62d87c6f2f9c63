package admin

import (
	"net"
	"net/netip"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// few is a listener that bounds how many connections there are, and how many of them one address
// may have. More are closed at once: those that are there keep their places, and readiness can
// still be asked for from elsewhere.
type few struct {
	net.Listener
	most, ofPeer int
	// files is how many descriptors may be taken while connections are: the others are for plugins
	// and files. 0: no bound.
	files int

	mu    sync.Mutex
	all   int
	peers map[netip.Addr]int
}

func limited(l net.Listener, most, ofPeer, files int) *few {
	return &few{Listener: l, most: most, ofPeer: ofPeer, files: files, peers: map[netip.Addr]int{}}
}

// Accept implements net.Listener.
func (l *few) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var peer netip.Addr
		if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
			peer = a.Addr().Unmap()
		}
		if budget.CheckFiles(budget.Descriptor(c), l.files) == nil && l.acquire(peer) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { l.leave(peer) })}, nil
		}
		_ = c.Close()
	}
}

func (l *few) acquire(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.most || l.peers[peer] >= l.ofPeer && !peer.IsLoopback() {
		return false
	}
	l.all++
	l.peers[peer]++
	return true
}

func (l *few) leave(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
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
