package listen

import (
	"fmt"
	"net"
	"testing"
)

// TestRead: what waits in a socket is there for who takes it over.
func TestRead(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"udp", "tcp"} {
		address := udp.LocalAddr().String()
		if network == "tcp" {
			address = tcp.Addr().String()
		}
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(network)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := udp.File()
	if err != nil {
		t.Fatal(err)
	}
	second, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = udp.Close(), tcp.Close()
	given, err := read(fmt.Sprintf("udp://x=%d,tcp://y=%d", first.Fd(), second.Fd()))
	if err != nil || len(given) != 2 || given[0].Address != "udp://x" {
		t.Fatal(given, err)
	}
	b := make([]byte, 10)
	if n, _, err := given[0].Packets.ReadFrom(b); err != nil || string(b[:n]) != "udp" {
		t.Errorf("%q, %v", b[:n], err)
	}
	c, err := given[1].Streams.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(b); err != nil || string(b[:n]) != "tcp" {
		t.Errorf("%q, %v", b[:n], err)
	}
	_, _, _ = c.Close(), given[0].Packets.Close(), given[1].Streams.Close()
}

func TestWrong(t *testing.T) {
	if all, err := read(""); err != nil || len(all) > 0 {
		t.Error(all, err)
	}
	for _, text := range []string{"udp://x", "udp://x=", "udp://x=1", "udp://x=9999"} {
		if _, err := read(text); err == nil {
			t.Error(text)
		}
	}
}
