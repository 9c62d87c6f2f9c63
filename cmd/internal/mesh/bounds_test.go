package mesh

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
)

// TestBoundsOfNamespaces: by default a namespace has a quarter of the core's memory, the control
// plane's own and those that are named have no bound, and what is served instead of policies that
// are refused denies everything to all workloads.
func TestBoundsOfNamespaces(t *testing.T) {
	for _, c := range []struct {
		bytes  int64
		memory uint64
		want   int64
	}{{0, 4 << 30, 1 << 30}, {5 << 20, 4 << 30, 5 << 20}, {0, 0, 0}} {
		if got := Bounds(c.bytes, c.memory, "istio-system", "").Bytes; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	b := Bounds(0, 1<<30, "istio-system", "root, other")
	if !slices.Equal(b.Free, []string{"istio-system", "root", "other"}) {
		t.Errorf("free: %q", b.Free)
	}
	table, row := b.Instead("evil")
	var spec security.AuthorizationPolicy
	if err := proto.Unmarshal(row.Payload, &spec); err != nil {
		t.Fatal(err)
	}
	rules := spec.Rules
	if !slices.Contains(b.Policies, table) || spec.Action != security.AuthorizationPolicy_DENY || spec.Selector != nil || len(spec.TargetRefs) != 0 ||
		len(rules) != 1 || len(rules[0].From)+len(rules[0].To)+len(rules[0].When) != 0 {
		t.Errorf("%s %v", table, &spec)
	}
}
