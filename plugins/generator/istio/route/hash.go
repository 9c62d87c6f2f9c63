package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
)

// hash is what the load balancer towards a destination hashes by: as the rule says of the subset at
// the port that the route names, of the subset, of the port, or of all, the first that hashes at
// all.
func (b *builder) hash(d *networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB {
	rule, port := b.Rule(d.GetHost()), d.GetPort().GetNumber()
	if s := cluster.FindSubset(rule, d.GetSubset()); s != nil {
		if h := hashAt(s.TrafficPolicy, port); h != nil {
			return h
		}
	}
	return hashAt(rule.GetTrafficPolicy(), port)
}

// hashAt is what a policy hashes by at a port; 0: at any.
func hashAt(p *networking.TrafficPolicy, port uint32) *networking.LoadBalancerSettings_ConsistentHashLB {
	for _, s := range p.GetPortLevelSettings() {
		if port != 0 && s.GetPort().GetNumber() == port && s.GetLoadBalancer().GetConsistentHash() != nil {
			return s.LoadBalancer.GetConsistentHash()
		}
	}
	return p.GetLoadBalancer().GetConsistentHash()
}

// hashPolicy says what of a request is hashed; none where nothing is.
func hashPolicy(h *networking.LoadBalancerSettings_ConsistentHashLB) []*routev3.RouteAction_HashPolicy {
	out := &routev3.RouteAction_HashPolicy{}
	switch k := h.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: k.HttpHeaderName}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		cookie := &routev3.RouteAction_HashPolicy_Cookie{Name: k.HttpCookie.GetName(), Path: k.HttpCookie.GetPath(), Ttl: k.HttpCookie.GetTtl()}
		for _, a := range k.HttpCookie.GetAttributes() {
			cookie.Attributes = append(cookie.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: a.GetName(), Value: a.GetValue()})
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: cookie}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: k.UseSourceIp},
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: k.HttpQueryParameterName},
		}
	default:
		return nil
	}
	return []*routev3.RouteAction_HashPolicy{out}
}
