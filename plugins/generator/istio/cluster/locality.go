package cluster

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
)

// Values of a service's trafficDistribution, in lower case: any will do.
const (
	preferClose    = "preferclose"
	preferSameZone = "prefersamezone"
	preferSameNode = "prefersamenode"
)

// Nearness is what counts for localities towards a service. At most one of the settings does.
type Nearness struct {
	// Locality is nil where it is switched off.
	Locality *networking.LocalityLoadBalancerSetting
	// Failover: other localities may come after those that are preferred. That takes somebody who
	// notices that endpoints fail, or a service that wants it.
	Failover bool
	// Zones leaves it to proxies that know how their own kind is spread over zones, and says
	// nothing to others. Disabled, it tells them not to heed zones.
	Zones *networking.ZoneAwareLoadBalancerSetting
}

// NearnessOf is what the policy says, the service's own wish, or what the mesh says; there, zones
// go before localities.
func NearnessOf(policy *networking.TrafficPolicy, s *config.Service, mesh Mesh) Nearness {
	noticed := policy.GetOutlierDetection() != nil
	balancer := policy.GetLoadBalancer()
	if own := balancer.GetLocalityLbSetting(); own != nil {
		return Nearness{Locality: enabled(own), Failover: noticed}
	}
	if own := balancer.GetZoneAwareLbSetting(); own != nil {
		return Nearness{Zones: own}
	}
	if labels := preferred(s); labels != nil {
		return Nearness{Locality: &networking.LocalityLoadBalancerSetting{FailoverPriority: labels}, Failover: true}
	}
	if endpoint.HeedsZones(mesh.Zones) {
		return Nearness{Zones: mesh.Zones}
	}
	return Nearness{Locality: enabled(mesh.Locality), Failover: noticed, Zones: mesh.Zones}
}

// preferred are the labels by which a service prefers endpoints near the client; nil where any will
// do.
func preferred(s *config.Service) []string {
	switch strings.ToLower(s.TrafficDistribution) {
	case preferClose, preferSameZone:
		return endpoint.Nearby()
	case preferSameNode:
		return endpoint.NodeFirst()
	}
	return nil
}

// prefers reports whether a service prefers some endpoints. Clients know of all of them then, be
// they ready or not, so as to know when to go to others.
func prefers(s *config.Service) bool { return preferred(s) != nil }

// Balance is what it means for a client; zones: the client knows those of its own kind.
func (n Nearness) Balance(from endpoint.Place, zones bool) endpoint.Balance {
	if endpoint.HeedsZones(n.Zones) {
		if !zones {
			return endpoint.Balance{}
		}
		return endpoint.BalanceByZone(n.Zones, from)
	}
	return endpoint.BalanceFor(n.Locality, from, n.Failover)
}

func enabled(s *networking.LocalityLoadBalancerSetting) *networking.LocalityLoadBalancerSetting {
	if e := s.GetEnabled(); e != nil && !e.Value {
		return nil
	}
	return s
}

// localities makes Envoy heed the weights of localities where they mean something, or zones.
func (in *Outbound) localities(c *clusterv3.Cluster) {
	if c.GetClusterType() != nil {
		return // there are no localities of hosts that aren't looked up yet
	}
	n := NearnessOf(in.Policy, in.Service, in.Mesh)
	s := n.Locality
	switch {
	case s != nil && (s.Distribute != nil || n.Failover && (s.Failover != nil || s.FailoverPriority != nil)):
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
		}
	case n.Zones != nil && in.Client.Zones:
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig_{ZoneAwareLbConfig: zoneAware(n.Zones)}
	}
}

// zoneAware is what proxies do about zones. They would heed them by themselves, so that the
// opposite has to be said.
func zoneAware(s *networking.ZoneAwareLoadBalancerSetting) *clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig {
	out := &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig{}
	if !endpoint.HeedsZones(s) {
		out.RoutingEnabled = &typev3.Percent{}
	} else if m := s.MinClusterSize; m != nil {
		out.MinClusterSize = wrapperspb.UInt64(uint64(m.Value))
	}
	return out
}
