package xds

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// metering are credentials whose connections are read no faster than their peers may send frames.
type metering struct {
	credentials.TransportCredentials
	server *Server
}

// ServerHandshake implements credentials.TransportCredentials: what it returns is HTTP/2 in plain.
func (m *metering) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	plain, info, err := m.TransportCredentials.ServerHandshake(c)
	if err != nil {
		return nil, nil, err
	}
	r := newMeter(plain, m.server, budget.Address(c.RemoteAddr().String()))
	if taken, ok := c.(*conn); ok {
		r.socket = taken.Conn
		m.server.conns.measure(taken, r)
	}
	return r, info, nil
}

func newMeter(c net.Conn, s *Server, peer string) *meter {
	m := &meter{Conn: c, server: s, peer: peer, closed: make(chan struct{})}
	m.unfinished = newUnfinished(s.config.Limits.Stream.RequestBytes)
	m.in, m.out = newFrames(len(http2.ClientPreface)), newFrames(0)
	m.in.begins = func(f frame) { m.costs.add(f); m.unfinished.begins(f) }
	m.in.brings, m.in.ends = m.unfinished.brings, m.unfinished.ends
	m.out.begins, m.out.brings, m.out.ends = func(frame) {}, m.unfinished.opens, m.unfinished.ends
	return m
}

// Clone implements credentials.TransportCredentials.
func (m *metering) Clone() credentials.TransportCredentials {
	return &metering{m.TransportCredentials.Clone(), m.server}
}

// meter is a connection that is read slowly while its peer sends too many frames: streams that it
// resets, pings, settings, headers.
type meter struct {
	net.Conn
	socket     net.Conn // below TLS; nil: not known
	server     *Server
	peer       string
	in, out    *frames
	costs      costs
	unfinished *unfinished
	wait       time.Duration // before more is read
	// sent is how many bytes were written that no window was opened for yet.
	sent   atomic.Int64
	once   sync.Once
	closed chan struct{}
}

// window is how many bytes a frame may open the window for at least; clients open it for tens of
// thousands at a time. A client may open some windows before anything is sent to it.
const (
	window  = 1 << 10
	advance = 100
)

// Read implements net.Conn.
func (m *meter) Read(b []byte) (int, error) {
	if m.wait > 0 {
		m.server.metrics.limits.WithLabelValues("maxNewStreamsPerPeer").Inc()
		timer := time.NewTimer(m.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.closed: // reading says so
		}
	}
	n, err := m.Conn.Read(b)
	m.in.follow(b[:n])
	if m.count() > 0 {
		m.room()
	}
	if !m.catchUp() {
		return 0, io.EOF // and nobody waits for answers to what it sent
	}
	cost, opened := m.costs.drain()
	if m.wait = 0; cost+opened > 0 {
		m.wait = m.server.peers.Frames(m.peer, cost+m.vain(opened), time.Now())
	}
	return n, err
}

// vain returns how many frames opened a window for nothing that was sent.
func (m *meter) vain(opened int) int {
	covered := min(opened, max(0, int(m.sent.Load()/window)+advance))
	m.sent.Add(-int64(covered) * window)
	return opened - covered
}

// Write implements net.Conn.
func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.sent.Add(int64(n))
	m.out.follow(b[:n])
	m.count()
	return n, err
}

// count brings the server's account up to date. It returns how much the connection's messages that
// aren't complete have grown.
func (m *meter) count() (grown int) {
	if grown = m.unfinished.growth(); grown != 0 {
		m.server.unfinished.Add(m.peer, grown)
	}
	return grown
}

// Close implements net.Conn.
func (m *meter) Close() error {
	m.once.Do(func() {
		close(m.closed)
		m.unfinished.close()
		m.count()
		m.countUnread()
	})
	return m.Conn.Close()
}
