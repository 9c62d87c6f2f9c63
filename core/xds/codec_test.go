package xds

import (
	"math/rand/v2"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestResponsesDecodeToWhatWasMeant compares random responses, decoded with Envoy's own types, with
// what they were made from.
func TestResponsesDecodeToWhatWasMeant(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, random.IntN(300))
		for i := range b {
			b[i] = byte('a' + random.IntN(26))
		}
		return string(b)
	}
	for range 2000 {
		r := &response{
			delta: random.IntN(2) == 0, typeURL: text(), version: text(), nonce: text(), identifier: text(),
		}
		sotw := &discovery.DiscoveryResponse{TypeUrl: r.typeURL, VersionInfo: r.version, Nonce: r.nonce}
		delta := &discovery.DeltaDiscoveryResponse{TypeUrl: r.typeURL, SystemVersionInfo: r.version, Nonce: r.nonce}
		for range random.IntN(5) {
			name, value, ttl := text(), []byte(text()), uint32(random.IntN(2)*random.IntN(1000))
			b := view.NewBody(r.typeURL, name, value, ttl)
			r.resources = append(r.resources, b)
			any := &anypb.Any{TypeUrl: r.typeURL, Value: value}
			sotw.Resources = append(sotw.Resources, any)
			d := &discovery.Resource{Name: name, Version: b.Version(), Resource: any}
			if ttl > 0 {
				d.Ttl = &durationpb.Duration{Seconds: int64(ttl)}
			}
			delta.Resources = append(delta.Resources, d)
		}
		if r.identifier != "" {
			sotw.ControlPlane = &core.ControlPlane{Identifier: r.identifier}
			delta.ControlPlane = sotw.ControlPlane
		}
		var want, got proto.Message = sotw, &discovery.DiscoveryResponse{}
		if r.delta {
			for range random.IntN(3) {
				r.removed = append(r.removed, text())
			}
			delta.RemovedResources = r.removed
			want, got = delta, &discovery.DeltaDiscoveryResponse{}
		}
		buffers, err := newCodec().Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(buffers.Materialize(), got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(want, got) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestFragmentsAreNotCopied: a response holds the bodies' own bytes.
func TestFragmentsAreNotCopied(t *testing.T) {
	large := make([]byte, 100_000)
	b, l := resource(cds, "a", "1"), view.NewBody(cds, "b", large, 0)
	buffers, err := newCodec().Marshal(&response{resources: []*view.Body{b, l}})
	if err != nil {
		t.Fatal(err)
	}
	if first, _ := b.Encoded(false); &buffers[0].ReadOnlyData()[0] != &first[0] || &buffers[2].ReadOnlyData()[0] != &large[0] {
		t.Fatal("a fragment was copied")
	}
}

// TestOtherMessagesAreProtobuf: health and reflection are served by the same codec.
func TestOtherMessagesAreProtobuf(t *testing.T) {
	in := &grpc_health_v1.HealthCheckRequest{Service: "x"}
	buffers, err := newCodec().Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := &grpc_health_v1.HealthCheckRequest{}
	if err := newCodec().Unmarshal(buffers, out); err != nil || !proto.Equal(in, out) {
		t.Fatal(out, err)
	}
}
