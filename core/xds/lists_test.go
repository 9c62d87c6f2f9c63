package xds

import (
	"fmt"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

func decoded(t *testing.T, c codec, r *discovery.DiscoveryRequest) *discovery.DiscoveryRequest {
	t.Helper()
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got := &discovery.DiscoveryRequest{}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, r) {
		t.Fatalf("decoded %v, want %v", got, r)
	}
	return got
}

// TestLists: requests are what protobuf makes of them, and equal lists of names are there once.
func TestLists(t *testing.T) {
	c := newCodec()
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("outbound|80||svc-%d.example", i))
	}
	r := &discovery.DiscoveryRequest{TypeUrl: "t", Node: &core.Node{Id: "n"}, VersionInfo: "1", ResourceNames: names}
	first := decoded(t, c, r)
	r.ResponseNonce, r.Node = "2", nil
	if next := decoded(t, c, r); &next.ResourceNames[0] != &first.ResourceNames[0] {
		t.Error("the same names were decoded twice")
	}
	r.ResourceNames = slices.Concat(names[:199], []string{"other"})
	if next := decoded(t, c, r); &next.ResourceNames[0] == &first.ResourceNames[0] {
		t.Error("different names are one list")
	}
	for i := range 2 * keptLists {
		r.ResourceNames = append(names[:200:200], fmt.Sprint(i))
		decoded(t, c, r)
	}
	if n := len(c.lists.kept); n > keptLists {
		t.Errorf("%d lists are kept", n)
	}
	decoded(t, c, &discovery.DiscoveryRequest{TypeUrl: string(make([]byte, 2000))})
	long := []byte{0x1a, 0xd0, 0x0f}
	long = append(long, slices.Repeat([]byte{0xff}, 2000)...)
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(long)}, &discovery.DiscoveryRequest{}); err == nil {
		t.Error("names that are no UTF-8 were taken")
	}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(long[:1500])}, &discovery.DiscoveryRequest{}); err == nil {
		t.Error("a message that is cut off was taken")
	}
}
