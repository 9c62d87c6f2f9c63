//go:build !wasip1

package process

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Carrier is a session.Carrier over a stream. Done is closed when it was closed or has ended.
type Carrier struct {
	stream messages
	cancel context.CancelFunc
	once   sync.Once
	done   chan struct{}
	// latest is the frame that was received last.
	latest []byte
}

var _ interface {
	session.Carrier
	session.Framer
} = (*Carrier)(nil)

// messages is what both ends of a stream have in common.
type messages interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

func newCarrier(s messages, cancel context.CancelFunc) *Carrier {
	return &Carrier{stream: s, cancel: cancel, done: make(chan struct{})}
}

// Open opens the session to a plugin.
func Open(conn *grpc.ClientConn) (*Carrier, error) {
	ctx, cancel := context.WithCancel(context.Background())
	desc := sessionStream()
	stream, err := conn.NewStream(ctx, &desc, "/"+serviceName+"/"+streamName,
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(maxFrame), grpc.MaxCallSendMsgSize(maxFrame))
	if err != nil {
		cancel()
		return nil, plain(err)
	}
	return newCarrier(stream, cancel), nil
}

// Send hands a frame to gRPC; it blocks while the other side does not read.
func (c *Carrier) Send(b []byte) error { return plain(c.stream.SendMsg(&frame{b})) }

// Frame implements session.Framer.
func (c *Carrier) Frame(size int) []byte { return sent.room(size) }

// Recv returns the next frame. The one before may be written over.
func (c *Carrier) Recv() ([]byte, error) {
	if place := c.latest; place != nil {
		received.Put(&place)
	}
	var f frame
	err := c.stream.RecvMsg(&f)
	c.latest = f.bytes
	if err != nil {
		_ = c.Close()
		return nil, c.ended(err)
	}
	return f.bytes, nil
}

// ended makes of gRPC's error why the session ended.
func (c *Carrier) ended(err error) error {
	if of, ok := c.stream.(grpc.ClientStream); ok {
		if limit := of.Trailer().Get(limitTrailer); len(limit) == 1 {
			return &session.LimitError{Limit: limit[0], Err: plain(err)}
		}
	}
	return plain(err)
}

// Close ends the stream.
func (c *Carrier) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.cancel()
	})
	return nil
}

// Done is closed when the stream is over.
func (c *Carrier) Done() <-chan struct{} { return c.done }

// plain makes gRPC's errors what a carrier returns: io.EOF for an end without a reason, otherwise
// the reason without gRPC's frame around it.
func plain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	switch s := status.Convert(err); s.Code() {
	case codes.Canceled:
		return io.EOF
	default:
		return errors.New(s.Message())
	}
}
