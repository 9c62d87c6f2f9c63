package simulator

import (
	"maps"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// hashes reports whether a cluster's balancer lets the request choose the endpoint.
func hashes(c *clusterv3.Cluster) bool {
	if policies := c.GetLoadBalancingPolicy().GetPolicies(); len(policies) > 0 {
		name := string(policies[0].GetTypedExtensionConfig().GetTypedConfig().MessageName())
		return strings.HasSuffix(name, ".RingHash") || strings.HasSuffix(name, ".Maglev")
	}
	return c.GetLbPolicy() == clusterv3.Cluster_RING_HASH || c.GetLbPolicy() == clusterv3.Cluster_MAGLEV
}

// weighsLocalities reports whether localities' weights count.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/locality_weight
func weighsLocalities(c *clusterv3.Cluster) bool {
	policies := c.GetLoadBalancingPolicy().GetPolicies()
	if len(policies) == 0 {
		return c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil
	}
	config := policies[0].GetTypedExtensionConfig().GetTypedConfig()
	var (
		least  leastv3.LeastRequest
		random randomv3.Random
		round  roundv3.RoundRobin
	)
	switch {
	case typed(config, &least):
		return least.GetLocalityLbConfig().GetLocalityWeightedLbConfig() != nil
	case typed(config, &random):
		return random.GetLocalityLbConfig().GetLocalityWeightedLbConfig() != nil
	case typed(config, &round):
		return round.GetLocalityLbConfig().GetLocalityWeightedLbConfig() != nil
	}
	return false
}

const lb = "envoy.lb"

// narrow leaves the endpoints of the subset that a route wants.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/subsets
func narrow(c *clusterv3.Cluster, l levels, metadata *corev3.Metadata) {
	config := c.GetLbSubsetConfig()
	if len(config.GetSubsetSelectors()) == 0 {
		return
	}
	want := metadata.GetFilterMetadata()[lb].GetFields()
	keys := slices.Sorted(maps.Keys(want))
	if some(config.SubsetSelectors, func(s *clusterv3.Cluster_LbSubsetConfig_LbSubsetSelector) bool {
		return slices.Equal(slices.Sorted(slices.Values(s.Keys)), keys)
	}) && l.with(want).count() > 0 {
		l.keep(want)
		return
	}
	switch config.FallbackPolicy {
	case clusterv3.Cluster_LbSubsetConfig_ANY_ENDPOINT:
	case clusterv3.Cluster_LbSubsetConfig_DEFAULT_SUBSET:
		l.keep(config.GetDefaultSubset().GetFields())
	default:
		l.drop()
	}
}

// with is what has metadata.
func (l levels) with(want map[string]*structpb.Value) (kept levels) {
	for _, v := range l {
		var k level
		for _, p := range v {
			k = append(k, &place{p.name, p.weight, p.priority, having(p.hosts, lb, want)})
		}
		kept = append(kept, k)
	}
	return kept
}

func (l levels) keep(want map[string]*structpb.Value) { copy(l, l.with(want)) }

func (l levels) drop() {
	for _, v := range l {
		for _, p := range v {
			p.hosts = nil
		}
	}
}

func having(hosts []*endpointv3.LbEndpoint, filter string, want map[string]*structpb.Value) []*endpointv3.LbEndpoint {
	return slices.DeleteFunc(slices.Clone(hosts), func(e *endpointv3.LbEndpoint) bool { return !has(e.GetMetadata(), filter, want) })
}

// has reports whether metadata has all these values.
func has(m *corev3.Metadata, filter string, want map[string]*structpb.Value) bool {
	fields := m.GetFilterMetadata()[filter].GetFields()
	for k, v := range want {
		if !proto.Equal(fields[k], v) {
			return false
		}
	}
	return true
}
