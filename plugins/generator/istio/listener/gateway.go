package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Gateway is a port of a gateway that takes plain HTTP.
type Gateway struct {
	Bind
	// Route is the name of the route configuration.
	Route string
	Proxy Proxy
}

// BuildGateway makes the listener.
func BuildGateway(in Gateway) *listenerv3.Listener {
	m := connectionManager(in.Proxy, "outbound_"+in.Name(), httpFilters(in.Proxy, false, config.HTTP))
	receiving(m, hcm.HttpConnectionManager_SANITIZE_SET, true)
	m.RouteSpecifier = throughRDS(in.Route)
	m.UseRemoteAddress = wrapperspb.Bool(true)
	m.HttpProtocolOptions = &core.Http1ProtocolOptions{}
	return &listenerv3.Listener{
		Name:             in.Name(),
		Address:          socketAddress(in.Address, in.Port),
		TrafficDirection: core.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{
			Filters:                       []*listenerv3.Filter{managerFilter(m)},
			TransportSocketConnectTimeout: durationpb.New(handshake),
		}},
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
}
