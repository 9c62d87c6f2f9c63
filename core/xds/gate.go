package xds

import (
	linked "container/list"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// gate is a listener that takes no more connections than it may.
type gate struct {
	net.Listener
	server *Server
	// files is how many descriptors the process may have open for connections to be taken; the
	// others are for plugins and files. 0: not known.
	files int
}

// conns are the connections of a server.
type conns struct {
	mu  sync.Mutex
	all map[string]*conn // by both ends' addresses
	// silent are those that have not had a stream, the oldest first.
	silent linked.List
}

// conn is one connection.
type conn struct {
	net.Conn
	server *Server
	peer   string
	since  time.Time
	once   sync.Once
	place  *linked.Element // nil once it has had a stream
	meter  *meter          // nil until its handshake is over
}

// tcp is a connection of TCP, also one of which something was read before it came here.
type tcp interface {
	syscall.Conn
	SetLinger(seconds int) error
}

func both(local, remote net.Addr) string { return local.String() + " " + remote.String() }

// Accept implements net.Listener. A connection that must not be is closed at once: there is no
// stream yet to say why, but the log does.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		taken, err := g.admit(c)
		if err == nil {
			return taken, nil
		}
		g.server.metrics.limited(err)
		g.server.lines.log(g.server.config.Log, slog.LevelWarn, "connection refused", "remote", c.RemoteAddr().String(), "reason", err)
		abort(c)
	}
}

// admit takes a connection in. Where there is no room, one that has been silent for long gives way.
func (g *gate) admit(c net.Conn) (net.Conn, error) {
	s, now := g.server, time.Now()
	key := budget.Address(c.RemoteAddr().String())
	prepare(c, s.config.Keepalive.Timeout)
	if err := budget.CheckFiles(budget.Descriptor(c), g.files); err != nil && !s.conns.giveWay(now) {
		return nil, err
	}
	err := s.peers.Connect(key, now)
	if budget.Full(err) && s.conns.giveWay(now) {
		err = s.peers.Connect(key, now)
	}
	if err != nil {
		return nil, err
	}
	taken := &conn{Conn: c, server: s, peer: key, since: now}
	s.conns.add(taken)
	return taken, nil
}

// patient is how long a connection may take to its first stream before it has to give way to
// another one.
const patient = time.Second

// giveWay closes the oldest connection without a stream, if there is one that had time for it.
func (c *conns) giveWay(now time.Time) bool {
	c.mu.Lock()
	oldest := c.silent.Front()
	c.mu.Unlock()
	if oldest == nil || now.Sub(oldest.Value.(*conn).since) < patient {
		return false
	}
	return oldest.Value.(*conn).Close() == nil
}

func (c *conns) add(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[both(n.LocalAddr(), n.RemoteAddr())] = n
	n.place = c.silent.PushBack(n)
}

// measure notes what reads a connection.
func (c *conns) measure(n *conn, m *meter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.meter = m
}

func (c *conns) remove(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := both(n.LocalAddr(), n.RemoteAddr()); c.all[key] == n {
		delete(c.all, key)
	}
	c.speak(n)
}

func (c *conns) speak(n *conn) {
	if n.place != nil {
		c.silent.Remove(n.place)
		n.place = nil
	}
}

// spoke notes that a connection has a stream.
func (c *conns) spoke(local, remote net.Addr) {
	if local == nil || remote == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.all[both(local, remote)]; n != nil {
		c.speak(n)
	}
}

// Close implements net.Conn.
func (n *conn) Close() error {
	n.once.Do(func() {
		n.server.conns.remove(n)
		n.server.peers.Disconnect(n.peer)
	})
	return n.Conn.Close()
}

// abort closes a connection without leaving anything of it behind.
func abort(c net.Conn) {
	if t, ok := c.(tcp); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
