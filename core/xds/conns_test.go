package xds

import (
	"net"
	"testing"
)

// TestConnections: a connection is known from when it comes until it goes, also if another one has
// its addresses by then.
func TestConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	all := conns{all: map[string]*conn{}}
	first, second := &conn{Conn: c}, &conn{Conn: c}
	all.add(first)
	all.add(second)
	all.remove(first)
	if len(all.all) != 1 || all.all[both(c.LocalAddr(), c.RemoteAddr())] != second || all.silent.Len() != 1 {
		t.Errorf("%d connections, %d without a stream", len(all.all), all.silent.Len())
	}
	all.remove(second)
	if len(all.all) != 0 || all.silent.Len() != 0 {
		t.Errorf("%d connections are left, %d without a stream", len(all.all), all.silent.Len())
	}
}

// TestGone: of what is no TCP connection nobody knows that its peer has gone.
func TestGone(t *testing.T) {
	a, b := net.Pipe()
	_ = b.Close()
	if gone(a) {
		t.Error("a pipe's peer is taken to be gone")
	}
}
