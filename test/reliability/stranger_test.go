package reliability

import (
	"context"
	"net"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
)

// stranger is the address that abusers have.
const stranger = "127.0.0.66"

// dialer dials from an address of this machine.
func dialer(from string) func(context.Context, string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}

// ads are a new connection of a stranger, closed with the test.
func (w *world) ads() discoveryv3.AggregatedDiscoveryServiceClient { return w.adsFrom(stranger) }

func (w *world) adsFrom(address string) discoveryv3.AggregatedDiscoveryServiceClient {
	conn := connect(w.t, w.plane.XDS, address)
	w.t.Cleanup(func() { _ = conn.Close() })
	return discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
}

// strangerNode is who it says that it is.
func strangerNode() *corev3.Node { return newNode(stranger, "stranger", "strange") }

// sotw opens a stream, sends requests, and stays on it, again whenever it is ended.
func (w *world) sotw(requests ...*discoveryv3.DiscoveryRequest) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		insist(ctx, func(ctx context.Context) {
			s, err := ads.StreamAggregatedResources(ctx)
			_ = hold(s, err, requests, ready)
		})
	})
}

// delta does so with the other protocol.
func (w *world) delta(requests ...*discoveryv3.DeltaDiscoveryRequest) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		insist(ctx, func(ctx context.Context) {
			s, err := ads.DeltaAggregatedResources(ctx)
			_ = hold(s, err, requests, ready)
		})
	})
}

// hold sends requests on a stream and reads until it ends.
func hold[Q, A any](s grpc.BidiStreamingClient[Q, A], err error, requests []*Q, ready func()) error {
	for _, r := range requests {
		if err == nil {
			err = s.Send(r)
		}
	}
	ready()
	for err == nil {
		_, err = s.Recv()
	}
	return err
}
