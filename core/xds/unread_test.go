package xds

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"
)

// TestUnread: what waits to be read is what has come of a stream since its window was opened, but
// for what may have been read since, in whatever pieces it comes.
func TestUnread(t *testing.T) {
	for _, c := range []struct {
		name          string
		frames, bytes int
		opened        int
		waits         int
	}{
		{"little", 10, 100, 0, 0}, {"a quarter of the window", 16, 1024, 0, 0},
		{"more", 32, 1024, 0, 16<<10 + 32*frameCost}, {"more, and half of it read", 32, 1024, 16 << 10, 0},
		{"small frames", 1024, 32, 0, 16<<10 + 1024*frameCost}, {"a quarter read", 64, 1024, 16 << 10, 32<<10 + 48*frameCost},
		{"a long message, whose window is opened before", 200, 1024, 1 << 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out := newFlow(t), newFlow(t)
			in.sent.WriteString(http2.ClientPreface)
			in.open(1)
			for range c.frames {
				in.must(in.WriteData(1, false, make([]byte, c.bytes)))
			}
			out.must(out.WriteWindowUpdate(0, 1<<20))
			if c.opened > 0 {
				out.must(out.WriteWindowUpdate(1, uint32(c.opened)))
			}
			m := newMeter(nil, &Server{unread: budget.NewUnfinished(budget.Limits{})}, "a")
			for _, side := range []struct {
				*frames
				bytes []byte
			}{{m.in, in.sent.Bytes()}, {m.out, out.sent.Bytes()}} {
				for rest := side.bytes; len(rest) > 0; {
					n := 1 + rand.IntN(min(len(rest), 100))
					side.follow(rest[:n])
					rest = rest[n:]
				}
			}
			if got := m.countUnread(); got != c.waits || m.server.unread.Sum() != got {
				t.Errorf("%d bytes wait, not %d; in the account: %d", got, c.waits, m.server.unread.Sum())
			}
			m.unfinished.ends(frame{kind: http2.FrameRSTStream, stream: 1})
			if got := m.countUnread(); got != 0 || m.server.unread.Sum() != 0 {
				t.Error("after the stream's end:", got, m.server.unread.Sum())
			}
		})
	}
}

// TestRequestsThatWaitStayWithTheClient: a client that sends more than may be read is not read
// from, and stays; one of another address is served meanwhile, and nothing is left in the account
// when it has gone.
func TestRequestsThatWaitStayWithTheClient(t *testing.T) {
	server, client := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Stream.Requests = 1 })})
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.77")}}
	hog, err := dialer.Dial("tcp", client.Target())
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Close() //nolint:errcheck // it is closed below
	first, _ := proto.Marshal(sotw(node(), cds).sotw)
	message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(first))), first...)
	go func() {
		_, _ = hog.Write([]byte(http2.ClientPreface))
		f := http2.NewFramer(hog, nil)
		_ = f.WriteSettings()
		for stream := uint32(1); stream < 2000; stream += 2 {
			if f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(t), EndHeaders: true}) != nil {
				return
			}
			for range streamWindow / len(message) {
				if f.WriteData(stream, false, message) != nil {
					return
				}
			}
		}
	}()
	eventually(t, func() bool { return count(t, server.metrics.limits.WithLabelValues("maxRequestsPerStream")) > 100 })
	if n := server.unread.Sum(); n > 2*backlogMost {
		t.Error(n, "bytes wait to be read")
	}
	if err := say(t, client, sotw(node(), cds)); err != nil {
		t.Error(err)
	}
	if closed(t, hog) {
		t.Error("the connection was closed")
	}
	_ = hog.Close()
	eventually(t, func() bool { return server.unread.Sum() == 0 && server.unfinished.Sum() == 0 })
}
