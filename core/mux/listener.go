package mux

import (
	"net"
	"sync"
	"time"
)

// connQueue is how connections come to a server. It is closed until it is opened, and after it was
// closed again.
type connQueue struct {
	conns          chan net.Conn
	opened, closed chan struct{}
	open, close    func()
}

func newConnQueue() *connQueue {
	q := &connQueue{conns: make(chan net.Conn), opened: make(chan struct{}), closed: make(chan struct{})}
	q.open = sync.OnceFunc(func() { close(q.opened) })
	q.close = sync.OnceFunc(func() { close(q.closed) })
	return q
}

// hand hands a connection to the server. It reports whether the server has taken it.
func (q *connQueue) hand(c net.Conn) bool {
	select {
	case <-q.opened:
	default:
		return false
	}
	select {
	case q.conns <- c:
		return true
	case <-q.closed:
		return false
	}
}

// wait waits for a time. It reports whether it was closed meanwhile.
func (q *connQueue) wait(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-q.closed:
		return true
	case <-timer.C:
		return false
	}
}

// part is the port as one of the two servers has it.
type part struct {
	*connQueue
	port net.Listener
	// whole is closed with it; nil: it isn't.
	whole *Mux
}

// Accept implements net.Listener.
func (p *part) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *part) Close() error {
	if p.whole != nil {
		return p.whole.close()
	}
	p.connQueue.close()
	return nil
}

// Addr implements net.Listener.
func (p *part) Addr() net.Addr { return p.port.Addr() }
