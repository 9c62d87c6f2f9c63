package view

import (
	"slices"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestBodyIsBothProtocolsResource(t *testing.T) {
	const url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	for name, tt := range map[string]struct {
		value []byte
		ttl   uint32
	}{
		"a resource":       {[]byte("\x0a\x03abc"), 0},
		"an empty message": {nil, 0},
		"with a life time": {[]byte("\x0a\x03abc"), 300},
		"a large one":      {make([]byte, 70000), 300},
		"almost large":     {make([]byte, large-1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBody(url, "abc", tt.value, tt.ttl)
			resource := &anypb.Any{TypeUrl: url, Value: tt.value}
			want := &discovery.Resource{Name: "abc", Version: b.Version(), Resource: resource}
			if tt.ttl > 0 {
				want.Ttl = durationpb.New(300e9)
			}
			var delta discovery.DeltaDiscoveryResponse
			if err := proto.Unmarshal(encoded(b, true), &delta); err != nil {
				t.Fatal(err)
			}
			if len(delta.Resources) != 1 || !proto.Equal(want, delta.Resources[0]) { // Diff takes seconds for much that is equal
				t.Error(cmp.Diff([]*discovery.Resource{want}, delta.Resources, protocmp.Transform()))
			}
			var sotw discovery.DiscoveryResponse
			if err := proto.Unmarshal(encoded(b, false), &sotw); err != nil {
				t.Fatal(err)
			}
			if len(sotw.Resources) != 1 || !proto.Equal(resource, sotw.Resources[0]) {
				t.Error(cmp.Diff([]*anypb.Any{resource}, sotw.Resources, protocmp.Transform()))
			}
			if string(b.Value()) != string(tt.value) {
				t.Errorf("value %q", b.Value())
			}
		})
	}
}

func TestVersionIsContent(t *testing.T) {
	a, b := NewBody("t", "n", []byte("x"), 0), NewBody("t", "n", []byte("x"), 0)
	if a.Version() != b.Version() || len(a.Version()) != 16 {
		t.Errorf("versions %s and %s of the same content", a.Version(), b.Version())
	}
	for _, other := range []*Body{NewBody("t", "n", []byte("y"), 0), NewBody("u", "n", []byte("x"), 0), NewBody("t", "n", []byte("x"), 9)} {
		if other.Version() == a.Version() {
			t.Errorf("equal versions of different content")
		}
	}
}

func encoded(b *Body, delta bool) []byte {
	first, rest := b.Encoded(delta)
	return slices.Concat(append([][]byte{first}, rest...)...)
}
