package xds

import (
	"errors"
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
	if n := len(c.lists.kept); n > keptLists || len(c.lists.judged) != n {
		t.Errorf("%d lists are kept, and judgements of %d", n, len(c.lists.judged))
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

// TestJudge: names that requests repeat are judged once, as long as they are good.
func TestJudge(t *testing.T) {
	c := newCodec()
	judged := 0
	judge := func(bad error, names ...string) error {
		r := decoded(t, c, &discovery.DiscoveryRequest{ResourceNames: names})
		return c.lists.judge(r.ResourceNames, func([]string) error { judged++; return bad })
	}
	long := numbered(200, 20)
	for _, step := range []struct {
		bad   error
		names []string
		times int
	}{
		{nil, nil, 0}, {nil, []string{"few"}, 1}, {nil, []string{"few"}, 2},
		{errBad, long, 3}, {errBad, long, 4}, {nil, long, 5}, {nil, long, 5}, {errBad, long, 5}, {errBad, append(long, "more"), 6},
	} {
		if err := judge(step.bad, step.names...); judged != step.times || judged == step.times && err != nil && step.bad == nil {
			t.Errorf("%d names: judged %d times, not %d: %v", len(step.names), judged, step.times, err)
		}
	}
}

var errBad = errors.New("bad")
