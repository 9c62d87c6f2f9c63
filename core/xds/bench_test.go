package xds

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func manyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("outbound|80||service-%d.default.svc.cluster.local", i))
	}
	return names
}

// BenchmarkRequest is a request that repeats 1200 names, as ACKs in state of the world do: decoded,
// and found to be what the stream wants.
func BenchmarkRequest(b *testing.B) {
	c, subs := newCodec(), newSubscriptions()
	message, err := proto.Marshal(&discovery.DiscoveryRequest{TypeUrl: eds, ResponseNonce: "n", ResourceNames: manyNames(1200)})
	if err != nil {
		b.Fatal(err)
	}
	var data mem.BufferSlice // as frames of 16 KB bring it
	for len(message) > 0 {
		n := min(16<<10, len(message))
		data, message = append(data, mem.SliceBuffer(message[:n])), message[n:]
	}
	var now *subscription
	b.ReportAllocs()
	for b.Loop() {
		r := &discovery.DiscoveryRequest{}
		if err := c.Unmarshal(data, r); err != nil {
			b.Fatal(err)
		}
		to := subs.next(now, false, r.ResourceNames)
		if now != nil && to != now {
			b.Fatal("the same names are another subscription")
		}
		now = to
	}
}

// BenchmarkResponse is the encoding of a response of 1000 resources of 1.5 KB: references to their
// bytes, and the stream's own tail.
func BenchmarkResponse(b *testing.B) {
	c := newCodec()
	var bodies []*view.Body
	for _, n := range manyNames(1000) {
		bodies = append(bodies, view.NewBody(eds, n, make([]byte, 1500), 0))
	}
	shared := fragments(bodies, false)
	b.ReportAllocs()
	for b.Loop() {
		data, err := c.Marshal(&response{typeURL: eds, version: "v", nonce: "n", resources: bodies, fragments: shared, written: func() {}})
		if err != nil {
			b.Fatal(err)
		}
		data.Free()
	}
}
