package xds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"golang.org/x/net/http2"
)

// flow is what a client sends and what a server answers, as frames.
type flow struct {
	t    *testing.T
	sent bytes.Buffer
	*http2.Framer
}

func newFlow(t *testing.T) *flow {
	f := &flow{t: t}
	f.Framer = http2.NewFramer(&f.sent, nil)
	return f
}

func (f *flow) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *flow) open(stream uint32) {
	f.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: make([]byte, 10), EndHeaders: true}))
}

// prefix is what a message of a size begins with.
func prefix(size int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(size)) }

// TestUnfinished: what has come of messages is counted until they are complete or their stream
// ends, whatever pieces it comes in and however it is padded.
func TestUnfinished(t *testing.T) {
	const most = 4 << 20
	message := func(size, comes int) []byte { return append(prefix(size), make([]byte, comes)...) }
	for name, c := range map[string]struct {
		sends func(*flow)
		holds int
	}{
		"complete":  {func(f *flow) { f.must(f.WriteData(1, false, message(100, 100))) }, 0},
		"several":   {func(f *flow) { f.must(f.WriteData(1, false, append(message(100, 100), message(1000, 900)...))) }, 905},
		"empty":     {func(f *flow) { f.must(f.WriteData(1, false, append(message(0, 0), message(0, 0)...))) }, 0},
		"prefix":    {func(f *flow) { f.must(f.WriteData(1, false, prefix(10)[:3])) }, 3},
		"begun":     {func(f *flow) { f.must(f.WriteData(1, false, message(most, 1000))) }, 1005},
		"too large": {func(f *flow) { f.must(f.WriteData(1, false, message(most+1, 1000))) }, 0},
		"in parts": {func(f *flow) {
			f.must(f.WriteData(1, false, message(10_000, 1000)))
			f.must(f.WriteData(1, false, make([]byte, 1000)))
		}, 2005 + frameCost},
		"in parts and complete": {func(f *flow) {
			f.must(f.WriteData(1, false, message(2000, 1000)))
			f.must(f.WriteData(1, false, make([]byte, 1000)))
		}, 0},
		"padded": {func(f *flow) { f.must(f.WriteDataPadded(1, false, message(300, 200), make([]byte, 100))) }, 205},
		"two streams": {func(f *flow) {
			f.open(3)
			f.must(f.WriteData(1, false, message(9, 1)))
			f.must(f.WriteData(3, false, message(9, 2)))
		}, 13},
		"reset": {func(f *flow) {
			f.must(f.WriteData(1, false, message(9, 1)))
			f.must(f.WriteRSTStream(1, http2.ErrCodeCancel))
		}, 0},
		"half closed": {func(f *flow) { f.must(f.WriteData(1, true, message(9, 1))) }, 0},
		"of an old stream": {func(f *flow) {
			f.must(f.WriteRSTStream(1, http2.ErrCodeCancel))
			f.must(f.WriteData(1, false, message(9, 1)))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.sent.WriteString(http2.ClientPreface)
			f.open(1)
			c.sends(f)
			for range 50 {
				m := newMeter(nil, &Server{config: Config{Limits: budget.Limits{Stream: budget.Stream{RequestBytes: most}}}}, "")
				for rest := f.sent.Bytes(); len(rest) > 0; {
					n := 1 + rand.IntN(len(rest))
					m.in.follow(rest[:n])
					rest = rest[n:]
				}
				if got := m.unfinished.holds(); got != c.holds {
					t.Fatalf("%d bytes are counted, not %d", got, c.holds)
				}
				over := newFlow(t)
				over.must(over.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: make([]byte, 10), EndStream: true, EndHeaders: true}))
				over.must(over.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: make([]byte, 10), EndStream: true, EndHeaders: true}))
				if m.out.follow(over.sent.Bytes()); m.unfinished.holds() != 0 {
					t.Fatal("after the server has ended the streams:", m.unfinished.holds())
				}
			}
		})
	}
}

// TestUnfinishedMessagesAreBounded: the connection that has most of messages that aren't complete
// is closed when they are too much; others of the same peer go on, and nothing is left in the
// account.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	for name, edit := range map[string]func(*budget.Limits){
		"maxUnfinishedBytesPerPeer": func(l *budget.Limits) { l.Peer.Unfinished = 8 << 20 },
		"maxUnfinishedBytes":        func(l *budget.Limits) { l.Total.Unfinished = 8 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serve(t, Config{Source: oneCluster(), Limits: limits(edit)})
			light := open(t, client)
			ask(t, light, sotw(node(), cds).sotw)
			receiveNames(t, light)
			hog, err := net.Dial("tcp", client.Target())
			if err != nil {
				t.Fatal(err)
			}
			defer hog.Close() //nolint:errcheck // the server has
			go func() {
				_, _ = hog.Write([]byte(http2.ClientPreface))
				f := http2.NewFramer(hog, nil)
				_ = f.WriteSettings()
				for stream := uint32(1); ; stream += 2 {
					begin := append(prefix(4<<20), make([]byte, 16_000)...)
					if f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(t), EndHeaders: true}) != nil ||
						f.WriteData(stream, false, begin) != nil {
						return
					}
				}
			}()
			eventually(t, func() bool { return count(t, server.metrics.limits.WithLabelValues(name)) == 1 })
			_ = hog.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.Copy(io.Discard, hog); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection goes on")
			}
			ask(t, light, sotw(node(), eds, "a").sotw)
			receiveNames(t, light)
			eventually(t, func() bool {
				all, err := server.unfinished.Check("127.0.0.1")
				return !all && err == nil && server.unfinished.Sum() == 0
			})
		})
	}
}

// TestLongMessagesAreTaken: a message of nearly the largest size is taken where no bound is wider
// than it must be, and nothing of it stays in the account.
func TestLongMessagesAreTaken(t *testing.T) {
	server, client := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Peer.Unfinished = 8 << 20 })})
	s := open(t, client)
	names := []string{"a"}
	for range 900 {
		names = append(names, strings.Repeat("x", 4000)+string(rune('a'+len(names)%26))+strings.Repeat("y", len(names)%90))
	}
	ask(t, s, sotw(node(), eds, names...).sotw)
	if _, err := s.Recv(); err != nil {
		t.Error(err)
	}
	if n := server.unfinished.Sum(); n != 0 {
		t.Error(n, "bytes are left")
	}
}
