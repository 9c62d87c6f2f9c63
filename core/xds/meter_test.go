package xds

import (
	"bytes"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestFrames: what costs something is counted, in whatever pieces it comes.
func TestFrames(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&sent, nil)
	for _, write := range []func() error{
		func() error { return f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14}) },
		func() error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: make([]byte, 100)})
		},
		func() error { return f.WriteContinuation(1, true, make([]byte, 10<<10)) },
		func() error { return f.WriteData(1, false, make([]byte, 10<<10)) },
		func() error { return f.WriteData(1, false, nil) },
		func() error { return f.WritePing(false, [8]byte{}) },
		func() error { return f.WriteWindowUpdate(0, 1) },
		func() error { return f.WriteRSTStream(1, http2.ErrCodeCancel) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		frames, costs := newFrames(len(http2.ClientPreface)), &costs{}
		frames.begins = costs.add
		for rest := sent.Bytes(); len(rest) > 0; {
			n := 1 + rand.IntN(len(rest))
			frames.follow(rest[:n])
			rest = rest[n:]
		}
		cost, opened := costs.drain()
		if cost != 1+1+11+0+1+1+1 || opened != 1 {
			t.Fatal(cost, opened)
		}
	}
}

// TestFastFrames: a connection that floods with frames is read slowly, and stays; a client of
// another address is served meanwhile.
func TestFastFrames(t *testing.T) {
	for name, write := range map[string]func(*http2.Framer) error{
		"settings":   func(f *http2.Framer) error { return f.WriteSettings() },
		"priorities": func(f *http2.Framer) error { return f.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"empty data": func(f *http2.Framer) error { return f.WriteData(1, false, nil) },
		"windows":    func(f *http2.Framer) error { return f.WriteWindowUpdate(0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			server, client := serve(t, Config{Source: oneCluster(), Limits: limits(func(l *budget.Limits) { l.Peer.NewStreams = 5 })})
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.77")}}
			flood, err := dialer.Dial("tcp", client.Target())
			if err != nil {
				t.Fatal(err)
			}
			defer flood.Close() //nolint:errcheck // it may have ended
			f := http2.NewFramer(flood, nil)
			if _, err := flood.Write([]byte(http2.ClientPreface)); err != nil {
				t.Fatal(err)
			}
			if err := f.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(t), EndHeaders: true}); err != nil {
				t.Fatal(err)
			}
			go func() {
				for write(f) == nil { //nolint:revive // until it is closed
				}
			}()
			eventually(t, func() bool { return count(t, server.metrics.limits.WithLabelValues("maxNewStreamsPerPeer")) > 0 })
			if closed(t, flood) {
				t.Error("it was closed")
			}
			if err := say(t, client, sotw(node(), cds)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestOpenWindows: a client that opens windows for what it was sent waits for nothing.
func TestOpenWindows(t *testing.T) {
	m := &meter{}
	if n := m.vain(advance); n != 0 {
		t.Error(n)
	}
	m.sent.Add(10 * window)
	if n := m.vain(11); n != 1 {
		t.Error(n)
	}
	if n := m.vain(1); n != 1 {
		t.Error(n)
	}
}

// headers is the header block of a stream.
func headers(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, h := range strings.Fields(":method=POST :scheme=http :path=/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources " +
		":authority=x content-type=application/grpc te=trailers") {
		i := strings.LastIndex(h, "=")
		if err := e.WriteField(hpack.HeaderField{Name: h[:i], Value: h[i+1:]}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
