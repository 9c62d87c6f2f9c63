package reliability

import (
	"context"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
)

const votePromise = "what they say counts for themselves; edits of others arrive"

// refusalTrials are clients that say they are a proxy that is there, accept what it has, and refuse
// what comes.
func refusalTrials() []trial {
	return []trial{
		{name: "two that refuse what comes", promise: votePromise, do: func(w *world) { w.refuse(2, "no") }},
		{name: "50 that refuse what comes", promise: votePromise, do: func(w *world) { w.refuse(50, "no") }},
		{name: "50 that name it", promise: votePromise, do: func(w *world) { w.refuse(50, "Error adding/updating cluster(s) outbound|80||probe.example: no") }},
	}
}

// refuse has clients of the first probe's node accept their first clusters and refuse all others.
func (w *world) refuse(clients int, reason string) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		many(clients, func(int) {
			insist(ctx, func(ctx context.Context) {
				s, err := ads.StreamAggregatedResources(ctx)
				if err == nil {
					err = s.Send(&discoveryv3.DiscoveryRequest{Node: newNode("127.0.0.30", "probe-sotw", "test"), TypeUrl: cds})
				}
				for accepted := false; err == nil; accepted = true {
					var answer *discoveryv3.DiscoveryResponse
					if answer, err = s.Recv(); err != nil {
						break
					}
					reply := &discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: answer.Nonce}
					if accepted {
						reply.ErrorDetail = &rpc.Status{Code: 13, Message: reason}
					}
					err = s.Send(reply)
					ready()
				}
			})
		})
	})
}
