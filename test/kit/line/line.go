// Package line carries connections of tests between two programs on loopback, over lines that can
// be cut, stall, and lose or spoil what is said.
package line

import (
	"crypto/rand"
	"io"
	"net"
	"sync"
	"testing"
)

// Line carries connections to an address.
type Line struct {
	// Address is where it listens.
	Address string

	mu   sync.Mutex
	to   string
	shut bool
	// hangs: connections that come stall.
	hangs bool
	// limited: of what comes back so many bytes pass, then, if spoilt, some that nobody said, and
	// the connection ends.
	limited bool
	most    int
	spoilt  bool
	// active are the connections that a cut ends; one that stalls is false.
	active map[net.Conn]bool
}

// New listens on a free port of loopback and carries connections to a TCP address, until the test's
// end.
func New(t testing.TB, to string) *Line {
	t.Helper()
	return At(t, "127.0.0.1:0", to)
}

// At does so on an address.
func At(t testing.TB, address, to string) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{Address: listener.Addr().String(), to: to, active: map[net.Conn]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { l.carry(from) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); l.Cut(); ended.Wait() })
	return l
}

// Cut ends all connections, and those that come.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
	l.end()
}

// To has connections that come from now on lead to another address.
func (l *Line) To(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = address
}

// Stall has nothing more pass by the connections that there are; they stay open.
func (l *Line) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.active {
		l.active[c] = false
	}
}

// Hang has nothing pass by any connection, those that come included, as a server does that hangs.
func (l *Line) Hang() {
	l.Stall()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangs = true
}

// Truncate ends all connections, and has of each new one so many bytes pass of what comes back
// before it ends, too: answers that are cut in the middle.
func (l *Line) Truncate(most int) { l.limit(most, false) }

// Spoil does so, with bytes that nobody said before the end.
func (l *Line) Spoil(most int) { l.limit(most, true) }

func (l *Line) limit(most int, spoilt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut, l.limited, l.most, l.spoilt = false, true, most, spoilt
	l.end()
}

// Open lets connections pass again, whole. Those that stall still do.
func (l *Line) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limited {
		l.end()
	}
	l.shut, l.limited, l.hangs = false, false, false
}

// end ends the connections that there are; mu is held.
func (l *Line) end() {
	for c := range l.active {
		_ = c.Close()
	}
}

// hold notes a connection that a cut is to end, and ends it if the line is cut.
func (l *Line) hold(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[c] = !l.hangs; l.shut {
		_ = c.Close()
	}
}

func (l *Line) carry(from net.Conn) {
	l.hold(from)
	defer l.drop(from)
	l.mu.Lock()
	address := l.to
	l.mu.Unlock()
	to, err := net.Dial("tcp", address)
	if err != nil {
		_ = from.Close()
		return
	}
	l.hold(to)
	defer l.drop(to)
	var back sync.WaitGroup
	back.Go(func() { l.back(from, to) })
	_, _ = io.Copy(passing{l, to}, from)
	_ = to.Close()
	back.Wait()
}

// back carries what is answered.
func (l *Line) back(from, to net.Conn) {
	defer func() { _ = from.Close() }()
	l.mu.Lock()
	limited, most, spoilt := l.limited, l.most, l.spoilt
	l.mu.Unlock()
	if !limited {
		_, _ = io.Copy(passing{l, from}, to)
		return
	}
	_, _ = io.CopyN(passing{l, from}, to, int64(most))
	if spoilt {
		garbage := make([]byte, 64)
		_, _ = rand.Read(garbage)
		_, _ = from.Write(garbage)
	}
	_ = to.Close()
}

func (l *Line) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, c)
}

// passing writes to a connection unless it stalls.
type passing struct {
	*Line
	to net.Conn
}

func (p passing) Write(b []byte) (int, error) {
	p.mu.Lock()
	passes := p.active[p.to]
	p.mu.Unlock()
	if !passes {
		return len(b), nil
	}
	return p.to.Write(b)
}
