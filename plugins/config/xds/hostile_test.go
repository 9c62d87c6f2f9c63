package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// TestLiar: a server that says what none does ends nothing and takes nothing away; what can be
// taken of an answer is, no more is kept than may be, and when it is well again, what there is
// arrives.
func TestLiar(t *testing.T) {
	a, b, c := object("shop/a", dns("a.example")), object("shop/b", dns("b.example")), object("shop/c", dns("c.example"))
	with := func(more ...*anypb.Any) *discovery.DiscoveryResponse {
		return say(entries, "2", append([]*anypb.Any{a, b, c}, more...)...)
	}
	named := func(names ...string) (all []*anypb.Any) {
		for _, n := range names {
			all = append(all, object(n, dns("x.example")))
		}
		return all
	}
	several := func(n int, one *anypb.Any) []*anypb.Any { return slices.Repeat([]*anypb.Any{one}, n) }
	annotated := &mcp.Resource{
		Metadata: &mcp.Metadata{Name: "shop/large", Annotations: map[string]string{"a": strings.Repeat("x", 2<<20)}},
		Body:     pack(dns("l.example")),
	}
	versioned := func(version, nonce string) *discovery.DiscoveryResponse {
		return &discovery.DiscoveryResponse{TypeUrl: entries, VersionInfo: version, Nonce: nonce, Resources: []*anypb.Any{a, b, c}}
	}
	for name, tt := range map[string]struct {
		lie *discovery.DiscoveryResponse
		// says is a fault that is shown; ends: the stream does, and nothing of the answer counts.
		says string
		ends bool
	}{
		"nothing in it": {with(several(50, &anypb.Any{})...), "is no istio.mcp.v1alpha1.Resource", false},
		"bytes": {
			with(&anypb.Any{TypeUrl: "type.googleapis.com/istio.mcp.v1alpha1.Resource", Value: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}}),
			"is no istio.mcp.v1alpha1.Resource", false,
		},
		"another message":  {with(pack(dns("a.example"))), "is no istio.mcp.v1alpha1.Resource", false},
		"no body":          {with(object("shop/d", nil)), "body: is missing", false},
		"a body of itself": {with(object("shop/d", &mcp.Resource{Body: pack(&mcp.Resource{})})), "body: is a", false},
		"odd names": {
			with(named("shop", "/", "a/b/c", "../x/y", "shop/..", "../shop", "shop/\x00\x1b[2J", "\n/\n", strings.Repeat("x", 1<<20)+"/a")...),
			"is no NAMESPACE/NAME", false,
		},
		"again and again":   {with(several(60, a)...), "is in the answer twice", false},
		"one too large":     {with(pack(annotated)), "shop/large", false},
		"an old version":    {versioned("0", "n"), "", false},
		"a version of none": {versioned("", "n"), "", false},
		"a long version":    {versioned(strings.Repeat("9", 1<<20), strings.Repeat("n", 1<<20)), "", false},
		"an odd version":    {versioned("\x00\x1b", "\x00"), "", false},
		"empty ones":        {say(entries, "2", several(300_000, &anypb.Any{})...), "limits.resources", true},
		"more than is taken": {
			with(pack(&mcp.Resource{Metadata: &mcp.Metadata{Name: "shop/d", Labels: map[string]string{"a": strings.Repeat("x", 9<<20)}}})),
			"message larger than max", true,
		},
		"another type's name": {&discovery.DiscoveryResponse{TypeUrl: strings.Repeat("x", 1<<20), Resources: []*anypb.Any{a}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			first := func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
				if r.TypeUrl == entries && r.ResponseNonce == "" {
					return say(entries, "1", a, b)
				}
				return empty(r)
			}
			s.on = first
			out := s.run(t, map[string]any{"limits": map[string]any{"resources": 100, "messageBytes": 8 << 20}})
			eventually(t, "it is in sync", out.inSync)
			want := []string{"shop/a", "shop/b"}
			if streams := s.streamed(); tt.ends && tt.says != "" {
				s.with(func() {
					s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
						if r.TypeUrl == entries {
							return tt.lie
						}
						return nil
					}
				})
				s.says <- tt.lie
				eventually(t, "it asks anew, twice", func() bool { return s.streamed() >= streams+2 })
			} else {
				s.says <- tt.lie
				if !tt.ends {
					want = append(want, "shop/c")
				}
			}
			eventually(t, "what can be taken is", func() bool { return slices.Equal(out.keys(kinds.ServiceEntry), want) })
			if tt.says != "" {
				eventually(t, "it is shown", func() bool { return strings.Contains(strings.Join(out.faults(t), "\n"), tt.says) })
			}
			for _, text := range append(out.faults(t), out.log()) {
				if strings.ContainsAny(text, "\x00\x1b") || len(text) > 200_000 {
					t.Errorf("%d bytes are told: %q", len(text), text[:min(len(text), 500)])
				}
			}
			well := say(entries, "9", a, b, object("shop/d", dns("d.example")))
			if tt.ends { // each stream has it from now on: who ends takes what was to be said along
				s.with(func() {
					s.on = func(r *discovery.DiscoveryRequest) *discovery.DiscoveryResponse {
						if r.TypeUrl == entries && r.ResponseNonce == "" {
							return well
						}
						return empty(r)
					}
				})
				s.cut(status.Error(codes.Unavailable, "well again"))
			} else {
				s.says <- well
			}
			eventually(t, "what there is arrives", func() bool { return slices.Equal(out.keys(kinds.ServiceEntry), []string{"shop/a", "shop/b", "shop/d"}) })
			eventually(t, "and is all well", func() bool { return len(out.faults(t)) == 0 })
		})
	}
}

// TestEntriesAreBounded: a server that names others each time, and something without a name, so
// that nothing may go, has no more kept than may be.
func TestEntriesAreBounded(t *testing.T) {
	b := newBook(t, `, "limits": {"resources": 100}`)
	b.handle(answer("1", object("shop/first", dns("first.example"))))
	for round := range 20 {
		all := []*anypb.Any{{}}
		for i := range 90 {
			all = append(all, object(fmt.Sprintf("shop/a%d-%d", round, i), dns(fmt.Sprintf("a%d-%d.example", round, i))))
		}
		b.handle(answer(fmt.Sprint(round+2), all...))
	}
	if n := len(b.entries); n != 100 || b.entries["shop/first"] == nil || b.left == 0 {
		t.Errorf("%d entries are kept, %d left out", n, b.left)
	}
	b.handle(answer("99", object("shop/last", dns("last.example"))))
	if n := len(b.entries); n != 1 || b.entries["shop/last"] == nil {
		t.Errorf("%d entries are kept of an answer with one", n)
	}
}

func TestCount(t *testing.T) {
	if n := count([]byte{0x12, 0, 0x12, 1, 7, 0x0a, 1, 'v', 0x12, 0}); n != 3 {
		t.Errorf("%d resources", n)
	}
	if n := count([]byte{0x12, 0, 0x12, 200}); n != 1 {
		t.Errorf("%d resources of what is cut", n)
	}
}
