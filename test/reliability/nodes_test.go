package reliability

import (
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

const nodePromise = "the stream is refused or served; no plugin's session ends, nobody else waits"

// nodeTrials are clients that say too much of themselves.
func nodeTrials() []trial {
	node := func(name string, change func(*corev3.Node)) trial {
		return trial{name: name, promise: nodePromise, do: func(w *world) {
			n := strangerNode()
			change(n)
			w.sotw(&discoveryv3.DiscoveryRequest{Node: n, TypeUrl: cds})
		}}
	}
	pad := func(bytes int) func(*corev3.Node) {
		return func(n *corev3.Node) { n.Metadata.Fields["PAD"] = structpb.NewStringValue(strings.Repeat("x", bytes)) }
	}
	return []trial{
		node("node of 1.1 MB", pad(1_100_000)),
		node("node of 2 MB", pad(2_000_000)),
		node("node of 3.9 MB", pad(3_900_000)),
		node("node of many fields", func(n *corev3.Node) {
			for i := range 100_000 {
				n.Metadata.Fields[fmt.Sprintf("field-%d", i)] = structpb.NewBoolValue(true)
			}
		}),
		node("node of many labels", func(n *corev3.Node) {
			labels := map[string]any{}
			for i := range 50_000 {
				labels[fmt.Sprintf("label-%d", i)] = "x"
			}
			s, _ := structpb.NewStruct(labels)
			n.Metadata.Fields["LABELS"] = structpb.NewStructValue(s)
		}),
		node("node that nests deeply", func(n *corev3.Node) {
			v := structpb.NewStringValue("bottom")
			for range 1500 { // messages may nest 10,000 levels, and each takes several
				v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": v}})
			}
			n.Metadata.Fields["DEEP"] = v
		}),
		node("node with a long id", func(n *corev3.Node) {
			n.Id = "sidecar~127.0.0.66~" + strings.Repeat("x", 2_000_000) + ".a~a.svc.cluster.local"
		}),
		node("node with a long locality", func(n *corev3.Node) { n.Locality = &corev3.Locality{Region: strings.Repeat("x", 2_000_000)} }),
		node("extensions of 1.8 MB", func(n *corev3.Node) {
			for i := range 20_000 {
				n.Extensions = append(n.Extensions, &corev3.Extension{Name: fmt.Sprintf("%s-%d", strings.Repeat("x", 80), i)})
			}
		}),
		{name: "500 nodes of 250 kB", promise: nodePromise, do: func(w *world) {
			w.under(func(ctx context.Context, ready func()) {
				many(500, func(i int) {
					ads := w.ads()
					n := strangerNode()
					different(n, i)
					pad(250_000)(n)
					insist(ctx, func(ctx context.Context) {
						s, err := ads.StreamAggregatedResources(ctx)
						_ = hold(s, err, []*discoveryv3.DiscoveryRequest{{Node: n, TypeUrl: cds}}, ready)
					})
				})
			})
		}},
		{name: "node of 2 MB, delta", promise: nodePromise, do: func(w *world) {
			n := strangerNode()
			pad(2_000_000)(n)
			w.delta(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: cds})
		}},
	}
}
