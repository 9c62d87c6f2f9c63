package mux

import (
	"net"
	"sync"
	"time"
)

// door is how connections come to a server. It is closed until it is opened, and after it was
// closed again.
type door struct {
	conns          chan net.Conn
	opened, closed chan struct{}
	open, close    func()
}

func newDoor() *door {
	d := &door{conns: make(chan net.Conn), opened: make(chan struct{}), closed: make(chan struct{})}
	d.open = sync.OnceFunc(func() { close(d.opened) })
	d.close = sync.OnceFunc(func() { close(d.closed) })
	return d
}

// hand hands a connection to the server. It reports whether the server has taken it.
func (d *door) hand(c net.Conn) bool {
	select {
	case <-d.opened:
	default:
		return false
	}
	select {
	case d.conns <- c:
		return true
	case <-d.closed:
		return false
	}
}

// wait waits for a time. It reports whether the door was closed meanwhile.
func (d *door) wait(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-d.closed:
		return true
	case <-timer.C:
		return false
	}
}

// part is the port as one of the two servers has it.
type part struct {
	*door
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
	p.door.close()
	return nil
}

// Addr implements net.Listener.
func (p *part) Addr() net.Addr { return p.port.Addr() }
