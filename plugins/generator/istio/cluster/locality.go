package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
)

// Values of a service's trafficDistribution.
const (
	preferClose    = "PreferClose"
	preferSameZone = "PreferSameZone"
	preferSameNode = "PreferSameNode"
)

// Locality is what counts for localities towards a service: the policy's setting, the service's own wish, or the mesh's setting; nil
// where it is switched off. failover: other localities may come after those that are preferred. That takes somebody who notices that
// endpoints fail, or a service that wants it.
func Locality(policy *networking.TrafficPolicy, s *config.Service, mesh *networking.LocalityLoadBalancerSetting) (setting *networking.LocalityLoadBalancerSetting, failover bool) {
	noticed := policy.GetOutlierDetection() != nil
	if own := policy.GetLoadBalancer().GetLocalityLbSetting(); own != nil {
		return enabled(own), noticed
	}
	switch s.TrafficDistribution {
	case preferClose, preferSameZone:
		return &networking.LocalityLoadBalancerSetting{FailoverPriority: endpoint.Nearby()}, true
	case preferSameNode:
		return &networking.LocalityLoadBalancerSetting{FailoverPriority: endpoint.NodeFirst()}, true
	}
	return enabled(mesh), noticed
}

func enabled(s *networking.LocalityLoadBalancerSetting) *networking.LocalityLoadBalancerSetting {
	if e := s.GetEnabled(); e != nil && !e.Value {
		return nil
	}
	return s
}

// localities makes Envoy heed the weights of localities where they mean something.
func (in *Outbound) localities(c *clusterv3.Cluster) {
	s, failover := Locality(in.Policy, in.Service, in.Mesh.Locality)
	if s == nil {
		return
	}
	if s.Distribute != nil || failover && (s.Failover != nil || s.FailoverPriority != nil) {
		c.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
			LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
		}
	}
}
