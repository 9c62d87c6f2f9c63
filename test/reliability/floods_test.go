package reliability

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// many does something n times at once.
func many(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

const floodPromise = "nobody else waits; memory stays bounded"

// floodTrials are clients that ask too often.
func floodTrials() []trial {
	return []trial{
		{name: "requests on one stream", promise: floodPromise, do: func(w *world) { w.flood(1, 1) }},
		{name: "requests on 200 streams", promise: floodPromise, do: func(w *world) { w.flood(10, 20) }},
		{name: "churn of names, delta", promise: floodPromise, do: churn},
		{name: "streams come and go", promise: floodPromise, do: func(w *world) { w.comeAndGo(20, func(*corev3.Node, int) {}) }},
		{name: "views come and go", promise: floodPromise, do: func(w *world) { w.comeAndGo(20, different) }},
		{name: "1,000 different proxies", promise: floodPromise, do: different1000},
		{name: "questions of debug types", promise: floodPromise, do: func(w *world) {
			w.repeat(20, &discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: "istio.io/debug", ResourceNames: []string{"config_dump"}})
		}},
		{name: "types that nobody offers", promise: floodPromise, do: func(w *world) {
			w.repeat(20, &discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: "type.googleapis.com/strange.Type"})
		}},
		{name: "reports of health", promise: floodPromise, do: func(w *world) {
			w.repeat(20, &discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: "type.googleapis.com/istio.v1.HealthInformation"})
		}},
	}
}

// flood asks for this and then for that, on streams of several connections, for eight seconds.
func (w *world) flood(connections, streams int) {
	a, b := unknown(100), unknown(200)
	w.underBurst(func(ctx context.Context, ready func()) {
		many(connections, func(int) {
			ads := w.ads()
			many(streams, func(int) {
				insistStream(ctx, ads.StreamAggregatedResources, func(s grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) {
					for err := s.Send(&discoveryv3.DiscoveryRequest{Node: strangerNode(), TypeUrl: eds, ResourceNames: a}); err == nil; {
						ready()
						if err = s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: b}); err == nil {
							err = s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: a})
						}
					}
				})
			})
		})
	})
}

// repeat sends one request again and again, on several streams, for eight seconds.
func (w *world) repeat(streams int, r *discoveryv3.DiscoveryRequest) {
	ads := w.ads()
	w.underBurst(func(ctx context.Context, ready func()) {
		many(streams, func(int) {
			insistStream(ctx, ads.StreamAggregatedResources, func(s grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) {
				for s.Send(r) == nil {
					ready()
				}
			})
		})
	})
}

// churn subscribes to a thousand names and takes that back, for eight seconds.
func churn(w *world) {
	ads := w.ads()
	w.underBurst(func(ctx context.Context, ready func()) {
		insistStream(ctx, ads.DeltaAggregatedResources,
			func(s grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) {
				names := unknown(1_000)
				for err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: strangerNode(), TypeUrl: eds, ResourceNamesSubscribe: names}); err == nil; {
					ready()
					if err = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesUnsubscribe: names}); err == nil {
						err = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: names})
					}
				}
			})
	})
}

// different makes each node the only one in its views.
func different(n *corev3.Node, i int) {
	n.Id = newNode(stranger, fmt.Sprintf("stranger-%d", i), fmt.Sprintf("strange-%d", i)).Id
	n.Metadata.Fields["NAMESPACE"] = structpb.NewStringValue(fmt.Sprintf("strange-%d", i))
	labels, _ := structpb.NewStruct(map[string]any{"app": fmt.Sprint(i)})
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(labels)
}

// comeAndGo opens streams, reads one answer and leaves, for eight seconds.
func (w *world) comeAndGo(streams int, change func(*corev3.Node, int)) {
	ads := w.ads()
	w.underBurst(func(ctx context.Context, ready func()) {
		many(streams, func(i int) {
			for ; ctx.Err() == nil; i += streams {
				ready()
				inner, end := context.WithCancel(ctx)
				if s, err := ads.StreamAggregatedResources(inner); err == nil {
					n := strangerNode()
					change(n, i)
					_ = s.Send(&discoveryv3.DiscoveryRequest{Node: n, TypeUrl: lds})
					_, _ = s.Recv()
				}
				end()
				pause(ctx, time.Millisecond)
			}
		})
	})
}

// different1000 connects a thousand proxies, each with views of its own, and stays.
func different1000(w *world) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		var connected sync.WaitGroup
		connected.Add(1000)
		go func() { connected.Wait(); ready() }()
		many(1000, func(i int) {
			once := sync.OnceFunc(connected.Done)
			defer once()
			insist(ctx, func(ctx context.Context) {
				defer once()
				s, err := ads.StreamAggregatedResources(ctx)
				if err != nil {
					return
				}
				n := strangerNode()
				different(n, i)
				_ = s.Send(&discoveryv3.DiscoveryRequest{Node: n, TypeUrl: cds})
				_ = s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: lds})
				_, _ = s.Recv()
				once()
				drain(s.Recv)
			})
		})
	})
}
