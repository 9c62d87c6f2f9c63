package listener

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// TestTunnels: connections towards a subset go by its own tunnel alone, others by that of the rule.
func TestTunnels(t *testing.T) {
	to := func(host string) *networking.TrafficPolicy {
		return &networking.TrafficPolicy{Tunnel: &networking.TrafficPolicy_TunnelSettings{TargetHost: host, TargetPort: 443}}
	}
	rule := &networking.DestinationRule{TrafficPolicy: to("all"), Subsets: []*networking.Subset{{Name: "own", TrafficPolicy: to("own")}, {Name: "plain"}}}
	one, two := []Share{{Cluster: "a"}}, []Share{{"a", 1}, {"b", 1}}
	for _, c := range []struct {
		forward Forward
		want    string
	}{
		{Forward{Shares: one, Rule: rule}, "all:443"},
		{Forward{Shares: one, Rule: rule, Subset: "own"}, "own:443"},
		{Forward{Shares: one, Rule: rule, Subset: "plain"}, ""},
		{Forward{Shares: two, Rule: rule}, "all:443"},
		{Forward{Shares: one}, ""},
		{Forward{Shares: one, Rule: rule, Straight: true}, ""},
	} {
		if got := c.forward.tunnel().GetHostname(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.forward, got, c.want)
		}
	}
}
