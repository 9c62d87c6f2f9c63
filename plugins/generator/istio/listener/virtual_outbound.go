package listener

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// BuildVirtualOutbound makes the listener that all intercepted connections arrive at: it hands them
// to the listener of their destination, and takes what has none.
func BuildVirtualOutbound(outside string, p Reporting) *listenerv3.Listener {
	out := &listenerv3.Listener{
		Name: VirtualOutbound,

		Address:             p.everywhere(p.Ports.Outbound),
		AdditionalAddresses: p.everywhereElse(p.Ports.Outbound),
		TrafficDirection:    core.TrafficDirection_OUTBOUND,
		UseOriginalDst:      wrapperspb.Bool(true),
		Transparent:         transparent(p.Proxy),
		AccessLog:           p.refused(),
		FilterChains: []*listenerv3.FilterChain{
			{
				Name:             "virtualOutbound-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(p.Ports.Outbound)},
				Filters:          p.dropping(),
			},
			{
				Name:    "virtualOutbound-catchall-tcp",
				Filters: p.passing(cluster.ForConnections(outside), config.TCP),
			},
		},
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
	if outside == cluster.AllowAnyDynamic {
		out.ListenerFilters = []*listenerv3.ListenerFilter{httpInspector()}
		out.FilterChains = slices.Insert(out.FilterChains, 1, unknownHosts(p))
	}
	return out
}

func transparent(p Proxy) *wrapperspb.BoolValue {
	if !p.Transparent {
		return nil
	}
	return wrapperspb.Bool(true)
}
