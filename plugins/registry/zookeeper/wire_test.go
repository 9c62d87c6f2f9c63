package zookeeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// script is a connection whose other side says what it is given.
type script struct {
	net.Conn
	said io.Reader
	// sent takes what is written; nil: it is forgotten.
	sent io.Writer
}

func (s script) Read(p []byte) (int, error) { return s.said.Read(p) }

func (s script) Write(p []byte) (int, error) {
	if s.sent == nil {
		return len(p), nil
	}
	return s.sent.Write(p)
}

// words are numbers as they are on the wire; texts follow their length.
func words(all ...any) []byte {
	var b bytes.Buffer
	for _, w := range all {
		switch w := w.(type) {
		case int:
			_ = binary.Write(&b, binary.BigEndian, int32(w))
		case string:
			_ = binary.Write(&b, binary.BigEndian, int32(len(w)))
			b.WriteString(w)
		case []byte:
			b.Write(w)
		}
	}
	return b.Bytes()
}

func frame(body []byte) []byte { return append(words(len(body)), body...) }

// hello is the first answer, of a session with a timeout in milliseconds.
func hello(timeout int) []byte { return frame(words(0, timeout, 0, 7, "0123456789abcdef")) }

// answered returns what is handed on of answers to: the greeting, the children of a node (1), its
// value (2), whether it is there (3), and something else (4).
func answered(most int, answers []byte) (n int, err error) {
	w := newWire(script{said: bytes.NewReader(answers)}, most)
	_, _ = w.Write(frame(make([]byte, 44)))
	for i, op := range []int{opChildren2, opGetData, opExists, 99} {
		_, _ = w.Write(frame(words(i+1, op)))
	}
	out, err := io.ReadAll(w)
	return len(out), err
}

// TestWire: answers are handed on whole; those that are none end the connection.
func TestWire(t *testing.T) {
	greeting, stat := hello(10000), make([]byte, statBytes)
	good := [][]byte{
		frame(words(1, 0, 7, 0, 2, "a", "bc", stat)), frame(words(2, 0, 7, 0, "value", stat)),
		frame(words(2, 0, 7, 0, -1, stat)), frame(words(3, 0, 7, 0, stat)),
		frame(words(4, 0, 7, 0, "whatever")), frame(words(1, 0, 7, -101)), frame(words(-1, 0, 7, 0, 3, 3, "/dubbo")), frame(words(-2, 0, 7, 0)),
	}
	for i, g := range good {
		all := append(bytes.Clone(greeting), g...)
		if n, err := answered(1000, all); err != nil || n != len(all) {
			t.Errorf("%d: %d of %d bytes, %v", i, n, len(all), err)
		}
	}
	for i, bad := range [][]byte{
		frame(words(1, 0, 7, 0, 1<<30, "a", stat)), frame(words(1, 0, 7, 0, -7, stat)),
		frame(words(1, 0, 7, 0, 1, 1<<30, stat)), frame(words(1, 0, 7, 0, 1, "a")),
		frame(words(2, 0, 7, 0, 1<<30, stat)), frame(words(2, 0, 7, 0, -2, stat)), frame(words(3, 0, 7, 0)), frame(words(1)), words(-1), words(1<<30, 1),
		frame(words(-1, 0, 7, 0, 3)), frame(words(-1, 0, 7, 0, 3, 3, 100)),
	} {
		if n, err := answered(1000, append(bytes.Clone(greeting), bad...)); !errors.Is(err, errAnswer) || n != len(greeting) {
			t.Errorf("%d: %d bytes, %v", i, n, err)
		}
	}
	for i, bad := range [][]byte{words(1<<31 - 1), hello(0), hello(-1), hello(1 << 30), frame(words(0, 10000, 0, 7, 100, make([]byte, 16)))} {
		if _, err := answered(1000, bad); !errors.Is(err, errAnswer) {
			t.Errorf("greeting %d: %v", i, err)
		}
	}
	if _, err := answered(1000, append(bytes.Clone(greeting), frame(make([]byte, 2000))...)); err == nil ||
		!strings.Contains(err.Error(), "limits.answerBytes") {
		t.Errorf("a large answer: %v", err)
	}
	if _, err := answered(1000, append(bytes.Clone(greeting), words(100, 1)...)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half an answer: %v", err)
	}
	if _, err := answered(1000, append(bytes.Clone(greeting), words(2000, 1, 0, 7, 0)...)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a part of a large answer: %v", err)
	}
}

// TestNumbersOfTransactions: they are not handed on, and watches are not set again: the library has
// a data race about both.
func TestNumbersOfTransactions(t *testing.T) {
	var sent bytes.Buffer
	w := newWire(script{said: bytes.NewReader(append(hello(10000), frame(words(4, 1, 2, 0, "whatever"))...)), sent: &sent}, 1000)
	_, _ = w.Write(frame(make([]byte, 44)))
	_, _ = w.Write(frame(words(4, 99)))
	before := sent.Len()
	if n, err := w.Write(frame(words(5, opSetWatches, 1, 2))); n != 20 || err != nil || sent.Len() != before {
		t.Errorf("a request to set watches: %d, %v, %d bytes were sent", n, err, sent.Len()-before)
	}
	if out, err := io.ReadAll(w); err != nil || !bytes.Equal(out[len(hello(10000)):], frame(words(4, 0, 0, 0, "whatever"))) {
		t.Errorf("%q is handed on, %v", out, err)
	}
}

// FuzzAnswers: whatever a server says, nothing breaks, and what is handed on is all of it up to
// where it is wrong.
func FuzzAnswers(f *testing.F) {
	for _, said := range odd() {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		if n, err := answered(1000, said); err == nil && n != len(said) || n > len(said) {
			t.Errorf("%d of %d bytes, %v", n, len(said), err)
		}
	})
}

// odd are things that a server might say.
func odd() [][]byte {
	stat := make([]byte, statBytes)
	return [][]byte{
		hello(0), hello(-1), hello(1), hello(10000), {0xff, 0xff, 0xff, 0xff}, append(hello(10000), 0, 0, 0, 4, 0, 0, 0, 1),
		append(hello(10000), frame(words(1, 0, 7, 0, 2, "a", "bc", stat))...), append(hello(10000), frame(words(1, 0, 7, 0, 1<<31-1, "a", stat))...),
		append(hello(10000), frame(words(1, 0, 7, 0, 1, 1<<31-1, "a", stat))...), append(hello(10000), frame(words(-1, 0, 7, 0, 3, 3, "/dubbo"))...),
		append(hello(10000), frame(words(-1, 0, 7, 0, 3, 3, -9))...), append(hello(10000), frame(words(1, 0, 7, -112))...),
	}
}

// TestLibrary: none of it breaks the client library, which would end the process.
func TestLibrary(t *testing.T) {
	c := configured(t, `{"limits": {"answerBytes": 65536}}`)
	for _, said := range odd() {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			var other sync.WaitGroup
			other.Go(func() { _, _ = io.Copy(io.Discard, there) })
			other.Go(func() { _, _ = there.Write(said); _ = there.Close() })
			s := newSession(c)
			s.conn = connectOver(t, s, newWire(here, 1000))
			select {
			case <-s.ready:
				f := s.read(target{path: "/dubbo"})
				if f.err == nil && len(f.children) > len(said) {
					t.Errorf("%d children", len(f.children))
				}
			case <-s.over:
			case <-time.After(time.Second):
			}
			s.close()
			_ = here.Close()
			other.Wait()
		})
	}
}

// connectOver has the client library use one connection.
func connectOver(t testing.TB, s *session, c net.Conn) *zk.Conn {
	t.Helper()
	used := false
	conn, _, err := zk.Connect([]string{"127.0.0.1:1"}, time.Second, zk.WithLogger(quiet{s}), zk.WithLogInfo(false), zk.WithEventCallback(s.event),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) {
			if used {
				return nil, io.EOF
			}
			used = true
			return c, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
