package reliability

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// probe is a well-behaved client that has all clusters and knows the last edit that has arrived.
type probe struct {
	name  string
	seen  atomic.Int64
	news  chan struct{}
	ended atomic.Int64 // streams that were ended while it wanted them
}

const (
	cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	eds = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	lds = "type.googleapis.com/envoy.config.listener.v3.Listener"
	rds = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// newProbe connects one of a protocol, again whenever its stream ends.
func newProbe(t testing.TB, address, protocol string, number int) *probe {
	t.Helper()
	p := &probe{name: protocol, news: make(chan struct{}, 1)}
	conn := connect(t, address, "127.0.0.1")
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	node := newNode(fmt.Sprintf("127.0.0.%d", 30+number), "probe-"+protocol, "test")
	follow := p.sotw
	if protocol == "delta" {
		follow = p.delta
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		insist(ctx, func(ctx context.Context) {
			_ = follow(ctx, ads, node)
			if ctx.Err() == nil {
				p.ended.Add(1)
			}
		})
	})
	t.Cleanup(func() { cancel(); ended.Wait(); _ = conn.Close() })
	return p
}

// newNode is a sidecar's.
func newNode(ip, name, namespace string) *corev3.Node {
	return &corev3.Node{
		Id: fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.cluster.local", ip, name, namespace, namespace),
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"NAMESPACE": structpb.NewStringValue(namespace), "INTERCEPTION_MODE": structpb.NewStringValue("NONE"),
		}},
	}
}

// connect connects from an address of this machine.
func connect(t testing.TB, address, from string) *grpc.ClientConn {
	t.Helper()
	soon := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer(from)), grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20), grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// insist does something again and again until ctx ends.
func insist(ctx context.Context, f func(context.Context)) {
	for ctx.Err() == nil {
		inner, cancel := context.WithCancel(ctx)
		f(inner)
		cancel()
		pause(ctx, 100*time.Millisecond)
	}
}

// insistStream does something on a stream whose answers are read by others, and again on another
// one when that has ended, until ctx ends.
func insistStream[Q, A any](ctx context.Context, open func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Q, A], error),
	do func(grpc.BidiStreamingClient[Q, A])) {
	insist(ctx, func(ctx context.Context) {
		if s, err := open(ctx); err == nil {
			go drain(s.Recv)
			do(s)
		}
	})
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *probe) sotw(ctx context.Context, ads discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) error {
	s, err := ads.StreamAggregatedResources(ctx)
	first := &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: cds}
	return converse(s, err, first, func(answer *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
		for _, r := range answer.Resources {
			p.look(r)
		}
		return &discoveryv3.DiscoveryRequest{TypeUrl: cds, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce}
	})
}

func (p *probe) delta(ctx context.Context, ads discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) error {
	s, err := ads.DeltaAggregatedResources(ctx)
	first := &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: cds}
	return converse(s, err, first, func(answer *discoveryv3.DeltaDiscoveryResponse) *discoveryv3.DeltaDiscoveryRequest {
		for _, r := range answer.Resources {
			p.look(r.Resource)
		}
		return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: answer.Nonce}
	})
}

// converse sends a request, and to each answer what next makes of it, until the stream ends.
func converse[Q, A any](s grpc.BidiStreamingClient[Q, A], err error, request *Q, next func(*A) *Q) error {
	for err == nil {
		if err = s.Send(request); err != nil {
			break
		}
		var answer *A
		if answer, err = s.Recv(); err == nil {
			request = next(answer)
		}
	}
	return err
}

// look sees which edit a cluster has: the number of connections that it allows.
func (p *probe) look(r *anypb.Any) {
	if !bytes.Contains(r.Value, []byte(probed)) {
		return
	}
	var c clusterv3.Cluster
	if proto.Unmarshal(r.Value, &c) != nil || len(c.GetCircuitBreakers().GetThresholds()) == 0 {
		return
	}
	p.seen.Store(int64(c.CircuitBreakers.Thresholds[0].GetMaxConnections().GetValue()))
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// has waits until an edit has arrived, or the deadline.
func (p *probe) has(edit int64, deadline <-chan time.Time) bool {
	for p.seen.Load() != edit {
		select {
		case <-p.news:
		case <-deadline:
			return false
		}
	}
	return true
}
