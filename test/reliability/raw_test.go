package reliability

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// raw is a connection of HTTP/2 whose client keeps no rules.
type raw struct {
	net.Conn
	*http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
}

const streamPath = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

// newRaw connects and sends the preface and settings. What comes is read and thrown away, unless
// deaf.
func newRaw(ctx context.Context, address string, deaf bool, settings ...http2.Setting) (*raw, error) {
	conn, err := dialer(stranger)(ctx, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
	r := &raw{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	r.encoder = hpack.NewEncoder(&r.headers)
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return nil, err
	}
	if err := r.WriteSettings(settings...); err != nil {
		return nil, err
	}
	if deaf {
		return r, nil
	}
	go func() {
		b := make([]byte, 64<<10)
		for {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	}()
	return r, r.WriteSettingsAck()
}

// insistRaw does something on a connection, and again on another one when that is over, until ctx
// ends.
func (w *world) insistRaw(ctx context.Context, deaf bool, do func(context.Context, *raw)) {
	insist(ctx, func(ctx context.Context) {
		if r, err := newRaw(ctx, w.plane.XDS, deaf); err == nil {
			defer func() { _ = r.Close() }()
			do(ctx, r)
		}
	})
}

// block is the header block of a gRPC call, with fields more.
func (r *raw) block(path string, more ...hpack.HeaderField) []byte {
	r.headers.Reset()
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}, more...) {
		_ = r.encoder.WriteField(f)
	}
	return r.headers.Bytes()
}

// open begins a stream, whose number is odd.
func (r *raw) open(id uint32, path string) error {
	return r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.block(path), EndHeaders: true})
}

// say sends a message on a stream.
func (r *raw) say(id uint32, message []byte) error {
	b := append([]byte{0}, binary.BigEndian.AppendUint32(nil, uint32(len(message)))...)
	return r.WriteData(id, false, append(b, message...))
}
