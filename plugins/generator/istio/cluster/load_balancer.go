package cluster

import (
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

func (in *Outbound) loadBalancer(c *clusterv3.Cluster) {
	if c.GetType() == clusterv3.Cluster_ORIGINAL_DST {
		return // where to go is given
	}
	settings := in.Policy.GetLoadBalancer()
	if hash := settings.GetConsistentHash(); hash != nil {
		consistentHash(c, hash)
		return
	}
	slow := slowStart(settings)
	switch settings.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	case networking.LoadBalancerSettings_ROUND_ROBIN:
		c.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
		if slow != nil {
			c.LbConfig = &clusterv3.Cluster_RoundRobinLbConfig_{RoundRobinLbConfig: &clusterv3.Cluster_RoundRobinLbConfig{SlowStartConfig: slow}}
		}
	case networking.LoadBalancerSettings_PASSTHROUGH:
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		c.LoadAssignment = nil
	default:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		if slow != nil {
			c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{SlowStartConfig: slow}}
		}
	}
}

func slowStart(s *networking.LoadBalancerSettings) *clusterv3.Cluster_SlowStartConfig {
	w := s.GetWarmup()
	if w == nil {
		if s.GetWarmupDurationSecs() == nil {
			return nil
		}
		return &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: s.WarmupDurationSecs}
	}
	out := &clusterv3.Cluster_SlowStartConfig{SlowStartWindow: w.Duration}
	if w.Aggression != nil {
		out.Aggression = &core.RuntimeDouble{DefaultValue: w.Aggression.Value, RuntimeKey: unusedRuntimeKey}
	}
	if w.MinimumPercent != nil {
		out.MinWeightPercent = &typev3.Percent{Value: w.MinimumPercent.Value}
	}
	return out
}

// unusedRuntimeKey stands where Envoy wants a key; nobody sets it.
const unusedRuntimeKey = "("

// defaultRing is the size of a hash ring that nothing is said of (Istio API, ConsistentHashLB.RingHash).
const defaultRing = 1024

func consistentHash(c *clusterv3.Cluster, h *networking.LoadBalancerSettings_ConsistentHashLB) {
	if m := h.GetMaglev(); m != nil {
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		out := &clusterv3.Cluster_MaglevLbConfig{}
		if m.TableSize > 0 {
			out.TableSize = wrapperspb.UInt64(m.TableSize)
		}
		c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: out}
		return
	}
	size := h.GetMinimumRingSize() // the older field still counts
	if r := h.GetRingHash(); r != nil {
		size = r.MinimumRingSize
	}
	c.LbPolicy = clusterv3.Cluster_RING_HASH
	c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
		MinimumRingSize: wrapperspb.UInt64(cmp.Or(size, defaultRing)),
	}}
}
