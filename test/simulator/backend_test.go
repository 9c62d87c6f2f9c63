package simulator

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
)

// certificate is one that nobody looks at.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates[0]
}

// backend starts a server that says its name to whoever says something, in plain text or in TLS,
// and returns its port.
func backend(t *testing.T, name string, c tls.Certificate) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { answer(conn, name, c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); ended.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// handshake is what TLS begins with.
const handshake = 0x16

func answer(conn net.Conn, name string, c tls.Certificate) {
	defer func() { _ = conn.Close() }()
	said := bufio.NewReader(conn)
	first, err := said.Peek(1)
	if err != nil {
		return
	}
	read := peeked{conn, said}
	if first[0] != handshake {
		_, _ = said.ReadString('\n')
		_, _ = io.WriteString(conn, name)
		return
	}
	secured := tls.Server(read, &tls.Config{Certificates: []tls.Certificate{c}})
	if _, err := secured.Read(make([]byte, 16)); err == nil {
		_, _ = io.WriteString(secured, name)
	}
	_ = secured.Close()
}

// peeked is a connection of which something has been read already.
type peeked struct {
	net.Conn
	from io.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.from.Read(b) }
