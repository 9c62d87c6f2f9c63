// Package mux shares a port in plain text between gRPC and pages: it looks at how each connection
// begins, and hands it to the server that it is for, which holds it to the same limits as one of a
// port of its own.
//
// A connection is gRPC's if it is one of HTTP/2 (RFC 9113) whose first request has the content type
// of gRPC, or does not come in time. All others are for pages. It stays what it is: gRPC on a
// connection for pages is refused, and the connection ends, so that the client's next one can be
// gRPC's; a page on a connection of gRPC's is refused by that.
package mux

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// decision is how long a connection may take to say what it is for.
const decision = 10 * time.Second

// Mux is a shared port.
type Mux struct {
	pages, grpc *connQueue
	undecided   *undecided
	// patience is how long a connection may take to say what it is for.
	patience time.Duration
	// files is how many descriptors may be taken while connections are let in; 0: no bound.
	files int

	opened chan struct{}
	port   net.Listener
	looks  sync.WaitGroup
}

// New returns a port that isn't open.
func New() *Mux {
	return &Mux{
		pages: newConnQueue(), grpc: newConnQueue(), undecided: newUndecided(mostUndecided, undecidedOfPeer), patience: decision,
		files: budget.FilesOfPages(budget.OpenFiles()), opened: make(chan struct{}),
	}
}

// Pages opens the port on a listener, and returns the part of it that is for pages. To close that
// part closes the port. It is called once.
func (m *Mux) Pages(port net.Listener) net.Listener {
	m.port = port
	m.pages.open()
	m.looks.Go(m.accept)
	close(m.opened)
	return &part{connQueue: m.pages, port: port, whole: m}
}

// GRPC returns the part that is for gRPC once the port is open. Until then, and after that part was
// closed, connections of gRPC are closed. The error is that ctx ended. It is called once.
func (m *Mux) GRPC(ctx context.Context) (net.Listener, error) {
	select {
	case <-m.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.grpc.open()
	return &part{connQueue: m.grpc, port: m.port}, nil
}

// close closes the port and the connections that have not said what they are for.
func (m *Mux) close() error {
	err := m.port.Close()
	m.pages.close()
	m.grpc.close()
	m.undecided.end()
	m.looks.Wait()
	return err
}

// Pauses after connections that could not be taken, such as for want of descriptors.
const leastPause, longestPause = 5 * time.Millisecond, time.Second

// accept takes connections until the port is closed.
func (m *Mux) accept() {
	pause := leastPause
	for {
		c, err := m.port.Accept()
		switch {
		case err == nil:
			pause = leastPause
			m.handle(c)
		case m.pages.wait(pause):
			return
		default:
			pause = min(2*pause, longestPause)
		}
	}
}

// handle begins to look at a connection.
func (m *Mux) handle(c net.Conn) {
	if budget.CheckFiles(budget.Descriptor(c), m.files) != nil {
		m.undecided.giveWay()
		abort(c)
		return
	}
	leave, ok := m.undecided.enter(c)
	if !ok {
		abort(c)
		return
	}
	m.looks.Go(func() {
		whose, taken := m.look(c)
		leave()
		if whose == nil || !whose.hand(taken) {
			abort(c)
		}
	})
}

// look returns whose a connection is, and the connection as it came. Nobody's: it is closed.
func (m *Mux) look(c net.Conn) (*connQueue, net.Conn) {
	if c.SetDeadline(time.Now().Add(m.patience)) != nil {
		return nil, nil
	}
	o := open(c)
	if c.SetDeadline(time.Time{}) != nil {
		return nil, nil
	}
	switch o.is {
	case grpc:
		return m.grpc, o.again(false)
	case page:
		return m.pages, o.again(o.greeted)
	default:
		return nil, nil
	}
}

// abort closes a connection without leaving anything of it behind.
func abort(c net.Conn) {
	if s, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = s.SetLinger(0)
	}
	_ = c.Close()
}
