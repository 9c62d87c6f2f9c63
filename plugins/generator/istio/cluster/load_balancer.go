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
	if c.GetType() == clusterv3.Cluster_ORIGINAL_DST || c.GetClusterType() != nil {
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
	return &clusterv3.Cluster_SlowStartConfig{
		SlowStartWindow:  w.Duration,
		Aggression:       &core.RuntimeDouble{DefaultValue: valueOr(w.Aggression, evenly), RuntimeKey: unusedRuntimeKey},
		MinWeightPercent: &typev3.Percent{Value: valueOr(w.MinimumPercent, firstShare)},
	}
}

// What warm-up means where it says no more than how long (Istio API, WarmupConfiguration).
const (
	evenly     = 1  // aggression: shares grow evenly
	firstShare = 10 // percent of its share that an endpoint begins with
)

func valueOr(v *wrapperspb.DoubleValue, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return v.Value
}

// unusedRuntimeKey stands where Envoy wants a key; nobody sets it.
const unusedRuntimeKey = "("

// defaultRing is the size of a hash ring where the kind of hashing isn't given (Istio API,
// ConsistentHashLB.minimumRingSize).
const defaultRing = 1024

// consistentHash sends what hashes alike to one endpoint. A ring or table that is asked for without
// its size has Envoy's.
func consistentHash(c *clusterv3.Cluster, h *networking.LoadBalancerSettings_ConsistentHashLB) {
	if m := h.GetMaglev(); m != nil {
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		if m.TableSize > 0 {
			c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{
				MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: wrapperspb.UInt64(m.TableSize)},
			}
		}
		return
	}
	c.LbPolicy = clusterv3.Cluster_RING_HASH
	size := cmp.Or(h.GetMinimumRingSize(), defaultRing) // the older field still counts
	if r := h.GetRingHash(); r != nil {
		size = r.MinimumRingSize
	}
	if size > 0 {
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{
			RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)},
		}
	}
}
