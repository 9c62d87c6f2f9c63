package listener

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Forward says where a connection's bytes go.
type Forward struct {
	// Stat names it in statistics.
	Stat string
	// Shares of the connections: all of them, if there is but one.
	Shares []Share
	// Rule is the client's rule for the first destination; nil without one.
	Rule *networking.DestinationRule
	// Subset of the rule; empty where connections are shared out.
	Subset string
	// Straight: not through a forward proxy, whatever Rule says.
	Straight bool
	// Lookup finds the destination by the name in the TLS hello.
	Lookup Lookup
}

// Share is what part of the connections a cluster gets.
type Share struct {
	Cluster string
	Weight  uint32
}

// ToCluster sends all connections to one cluster.
func ToCluster(name string) Forward {
	return Forward{Stat: name, Shares: []Share{{Cluster: name}}}
}

// ToRoute follows a route of a virtual service; named says which cluster a destination means.
func ToRoute(v *config.VirtualService, route []*networking.RouteDestination, named func(*networking.Destination) cluster.Name) Forward {
	if len(route) == 1 {
		n := named(route[0].Destination)
		out := ToCluster(n.String())
		out.Subset = n.Subset
		return out
	}
	out := Forward{Stat: v.Name + "." + v.Namespace}
	for _, d := range route {
		if d.Weight > 0 {
			out.Shares = append(out.Shares, Share{named(d.Destination).String(), uint32(d.Weight)})
		}
	}
	return out
}

// filters pass the bytes on, and read along where the protocol is one that statistics are kept of.
func (f *Forward) filters(p Reporting, protocol config.Protocol) []*listenerv3.Filter {
	out := p.forwarding(f.proxy(), protocol)
	return slices.Insert(out, len(out)-1, f.Lookup.byName(p.Dialing)...)
}

func (f *Forward) proxy() *tcp.TcpProxy {
	limits := f.Rule.GetTrafficPolicy().GetConnectionPool().GetTcp()
	out := &tcp.TcpProxy{
		StatPrefix:                      f.Stat,
		IdleTimeout:                     limits.GetIdleTimeout(),
		MaxDownstreamConnectionDuration: limits.GetMaxConnectionDuration(),
	}
	f.share(out)
	out.TunnelingConfig = f.tunnel()
	if f.bySource() {
		out.HashPolicy = []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}}
	}
	return out
}

func (f *Forward) share(out *tcp.TcpProxy) {
	if len(f.Shares) == 1 && f.Shares[0].Weight == 0 {
		out.ClusterSpecifier = &tcp.TcpProxy_Cluster{Cluster: f.Shares[0].Cluster}
		return
	}
	weighted := &tcp.TcpProxy_WeightedCluster{}
	for _, s := range f.Shares {
		weighted.Clusters = append(weighted.Clusters, &tcp.TcpProxy_WeightedCluster_ClusterWeight{Name: s.Cluster, Weight: s.Weight})
	}
	out.ClusterSpecifier = &tcp.TcpProxy_WeightedClusters{WeightedClusters: weighted}
}

// bySource reports whether connections of one address go to one endpoint.
func (f *Forward) bySource() bool {
	balancer := f.Rule.GetTrafficPolicy().GetLoadBalancer()
	if s := cluster.FindSubset(f.Rule, f.Subset).GetTrafficPolicy().GetLoadBalancer(); s != nil {
		balancer = s
	}
	return balancer.GetConsistentHash().GetUseSourceIp()
}
