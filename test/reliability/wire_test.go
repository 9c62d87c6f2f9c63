package reliability

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

const wirePromise = "others connect and wait no longer; memory stays bounded"

// wireTrials are clients that misuse TCP, TLS, HTTP/2 and gRPC.
func wireTrials() []trial {
	return []trial{
		{name: "10,000 silent connections", promise: wirePromise, do: func(w *world) {
			w.connections(10_000, func() string { return w.plane.XDS }, "")
		}},
		{name: "connections that fall silent", promise: wirePromise, do: func(w *world) {
			w.connections(2_000, func() string { return w.plane.XDS },
				http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+"\x00\x10\x00\x01\x00\x00\x00\x00\x01half")
		}},
		{name: "half a TLS handshake", promise: wirePromise, secure: true, do: func(w *world) {
			w.connections(2_000, func() string { return w.secure }, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
		}},
		{name: "streams reset at once", promise: wirePromise, do: rapidReset},
		{name: "100,000 silent streams", promise: wirePromise, do: func(w *world) { w.streams(100_000, nil) }},
		{name: "20,000 streams of one client", promise: wirePromise, do: func(w *world) {
			m, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds})
			w.streams(20_000, m)
		}},
		{name: "100,000 watches of health", promise: wirePromise, do: func(w *world) { w.calls(100_000, "/grpc.health.v1.Health/Watch", []byte{}) }},
		{name: "clients that never read", promise: wirePromise, do: neverRead},
		{name: "clients without a window", promise: wirePromise, do: noWindow},
		{name: "pings and settings", promise: wirePromise, do: pings},
		{name: "headers without end", promise: wirePromise, do: endlessHeaders},
		{name: "messages that are too long", promise: wirePromise, do: longMessages},
		{name: "messages that never end", promise: wirePromise, do: halfMessages},
		{name: "requests that wait", promise: wirePromise, do: waitingRequests},
		{name: "messages that are nearly complete", promise: wirePromise, do: nearlyMessages},
	}
}

// connections opens many, says a text on each, and stays; again what is closed.
func (w *world) connections(n int, address func() string, text string) {
	w.under(func(ctx context.Context, ready func()) {
		var opened atomic.Int64
		const at = 100 // once
		many(at, func(i int) {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					_ = c.Close()
				}
			}()
			for ; i < n && ctx.Err() == nil; i += at {
				c, err := (&net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(stranger)}}).DialContext(ctx, "tcp", address())
				if err == nil {
					_, _ = c.Write([]byte(text))
					held = append(held, c)
					opened.Add(1)
				}
			}
			ready()
			<-ctx.Done()
		})
		w.note("%d connections were opened", opened.Load())
	})
}

// rapidReset opens streams and resets them, on ten connections, for eight seconds.
func rapidReset(w *world) {
	w.underBurst(func(ctx context.Context, ready func()) {
		var opened atomic.Int64
		many(10, func(int) {
			w.insistRaw(ctx, false, func(ctx context.Context, r *raw) {
				for id := uint32(1); ctx.Err() == nil; id += 2 {
					if r.open(id, streamPath) != nil || r.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
						return
					}
					opened.Add(1)
					ready()
				}
			})
		})
		w.note("%d streams", opened.Load())
	})
}

// streams opens many on one connection, each with a first request unless it is nil.
func (w *world) streams(n int, request []byte) { w.calls(n, streamPath, request) }

func (w *world) calls(n int, path string, request []byte) {
	w.under(func(ctx context.Context, ready func()) {
		w.insistRaw(ctx, false, func(ctx context.Context, r *raw) {
			for i := range n {
				id := uint32(2*i + 1)
				if r.open(id, path) != nil || request != nil && r.say(id, request) != nil {
					break
				}
			}
			ready()
			pause(ctx, 5*time.Second)
		})
	})
}

// neverRead has 200 connections that ask for all clusters again and again, and never read a byte.
func neverRead(w *world) {
	first, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds})
	w.unread(first, func(ctx context.Context) (*raw, error) { return newRaw(ctx, w.plane.XDS, true) })
}

// noWindow has as many whose windows are shut: the server may send nothing.
func noWindow(w *world) {
	first, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds})
	w.unread(first, func(ctx context.Context) (*raw, error) {
		return newRaw(ctx, w.plane.XDS, false, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	})
}

func (w *world) unread(request []byte, open func(context.Context) (*raw, error)) {
	w.under(func(ctx context.Context, ready func()) {
		many(200, func(int) {
			insist(ctx, func(ctx context.Context) {
				r, err := open(ctx)
				if err != nil {
					return
				}
				defer func() { _ = r.Close() }()
				for id := uint32(1); id < 40; id += 2 {
					err = r.open(id, streamPath)
					for i := 0; i < 5 && err == nil; i++ {
						err = r.say(id, request)
					}
					if err != nil {
						return
					}
				}
				ready()
				pause(ctx, 10*time.Second)
			})
		})
	})
}

// pings floods connections with frames that want an answer.
func pings(w *world) {
	w.underBurst(func(ctx context.Context, ready func()) {
		many(10, func(i int) {
			w.insistRaw(ctx, i%2 == 0, func(ctx context.Context, r *raw) {
				for r.WritePing(false, [8]byte{1}) == nil && r.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14}) == nil {
					ready()
				}
			})
		})
	})
}

// endlessHeaders sends header blocks that go on and on.
func endlessHeaders(w *world) {
	w.underBurst(func(ctx context.Context, ready func()) {
		many(10, func(int) {
			w.insistRaw(ctx, false, func(ctx context.Context, r *raw) {
				if r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block(streamPath)}) != nil {
					return
				}
				for i := 0; ctx.Err() == nil; i++ {
					r.headers.Reset()
					_ = r.encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d", i), Value: strings.Repeat("x", 10_000)})
					if r.WriteContinuation(1, false, r.headers.Bytes()) != nil {
						return
					}
					ready()
				}
			})
		})
	})
}

// longMessages sends messages of 16 MB, four times the bound, on ten connections.
func longMessages(w *world) {
	long := make([]byte, 16<<20)
	w.underBurst(func(ctx context.Context, ready func()) {
		many(10, func(int) {
			conn := connect(w.t, w.plane.XDS, stranger)
			defer func() { _ = conn.Close() }()
			insist(ctx, func(ctx context.Context) {
				s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
				if err != nil {
					return
				}
				_ = s.Send(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds, VersionInfo: string(long)})
				ready()
				drain(s.Recv)
			})
		})
	})
}

// halfMessages has 1,000 streams whose messages are said to have 4 MB and of which 16 kB come.
func halfMessages(w *world) {
	w.under(func(ctx context.Context, ready func()) {
		many(10, func(int) {
			w.insistRaw(ctx, false, func(ctx context.Context, r *raw) {
				for id := uint32(1); id < 200; id += 2 {
					if r.open(id, streamPath) != nil || r.WriteData(id, false, append([]byte{0, 0, 0x3f, 0xff, 0xff}, make([]byte, 16_000)...)) != nil {
						return
					}
				}
				ready()
				pause(ctx, 10*time.Second)
			})
		})
	})
}

// nearlyMessages has ten connections of 100 streams each with a message of 4 MiB of which the last
// 100 kB never come: 3.9 GB that would be kept.
func nearlyMessages(w *world) {
	var sent atomic.Int64
	w.under(func(ctx context.Context, ready func()) {
		many(10, func(int) {
			insist(ctx, func(ctx context.Context) {
				p, err := newPatient(ctx, w.plane.XDS)
				if err != nil {
					return
				}
				defer func() { _ = p.Close() }()
				for id := uint32(1); id < 200; id += 2 {
					n, err := p.send(id, append([]byte{0, 0, 0x40, 0, 0}, make([]byte, 4<<20-100_000)...))
					if sent.Add(int64(n)); err != nil {
						return
					}
					ready()
				}
				pause(ctx, 10*time.Second)
			})
		})
	})
	w.note("%d MB were sent", sent.Load()/1e6)
}

// waitingRequests has ten connections of 1,000 streams each whose windows are full of requests,
// more than are taken in a minute.
func waitingRequests(w *world) {
	first, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: cds})
	old, _ := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: "old"})
	message := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...) }
	var sent atomic.Int64
	w.under(func(ctx context.Context, ready func()) {
		many(10, func(int) {
			insist(ctx, func(ctx context.Context) {
				p, err := newPatient(ctx, w.plane.XDS)
				if err != nil {
					return
				}
				defer func() { _ = p.Close() }()
				for id := uint32(1); id < 2000; id += 2 {
					if _, err := p.send(id, message(first)); err != nil {
						return
					}
					for range 65535/len(message(old)) - 5 {
						if _, err := p.more(id, message(old)); err != nil {
							return
						}
						sent.Add(1)
					}
					ready()
				}
				pause(ctx, 10*time.Second)
			})
		})
	})
	w.note("%d requests were sent", sent.Load())
}
