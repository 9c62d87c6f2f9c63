package listener

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Gateway is a listener of a gateway.
type Gateway struct {
	Bind
	Chains []GatewayChain
	Guards *Guards
	Proxy  Reporting
	TLS    TLSDefaults
}

// GatewayChain is what happens to some of the connections.
type GatewayChain struct {
	// Names in TLS hellos by which clients ask for it; a `*` among them means any, as does none. Protocols that they offer there; any if empty.
	Names, Protocols []string
	// TLS is how the proxy opens TLS; nil where it doesn't.
	TLS      *networking.ServerTLSSettings
	Protocol config.Protocol
	// Route is the name of the route configuration, where requests are read, and Stat names them in statistics (empty: as the listener).
	Route, Stat string
	// Forward is where bytes go, where they aren't.
	Forward Forward
}

// Requests reports whether requests are read.
func (c *GatewayChain) Requests() bool { return c.Route != "" }

// BuildGateway makes the listener.
func BuildGateway(in Gateway) *listenerv3.Listener {
	out := &listenerv3.Listener{
		Name:                                 in.Name(),
		Address:                              socketAddress(in.Address, in.Port),
		TrafficDirection:                     core.TrafficDirection_OUTBOUND,
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
		AccessLog:                            in.Proxy.refused(),
		ListenerFilters:                      in.Proxy.Settings.front(),
	}
	for _, c := range in.Chains {
		chain := in.chain(c)
		if c.TLS != nil {
			chain.TransportSocket = serverSocket(c.TLS, in.TLS, !c.Requests())
		}
		out.FilterChains = append(out.FilterChains, chain)
	}
	if slices.ContainsFunc(in.Chains, func(c GatewayChain) bool { return len(c.Names) > 0 || c.TLS != nil }) {
		out.ListenerFilters = append(out.ListenerFilters, tlsInspector())
	}
	return out
}

func (in *Gateway) chain(c GatewayChain) *listenerv3.FilterChain {
	out := &listenerv3.FilterChain{
		FilterChainMatch:              c.match(),
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
	if c.Requests() {
		out.Filters = append(out.Filters, managerFilter(in.manager(c)))
		return out
	}
	if c.TLS.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		out.Filters = append(out.Filters, networkMetadata(in.Proxy.Proxy)...)
	}
	out.Filters = append(out.Filters, in.Guards.connections()...)
	out.Filters = append(out.Filters, c.Forward.filters(in.Proxy, c.Protocol)...)
	return out
}

func (c *GatewayChain) match() *listenerv3.FilterChainMatch {
	m := &listenerv3.FilterChainMatch{ApplicationProtocols: c.Protocols}
	if !slices.Contains(c.Names, "*") {
		m.ServerNames = c.Names
	}
	if len(m.ServerNames) == 0 && len(m.ApplicationProtocols) == 0 {
		return nil
	}
	return m
}

func (in *Gateway) manager(c GatewayChain) *hcm.HttpConnectionManager {
	m := connectionManager(in.Proxy, "outbound_"+in.Name(), in.Guards.requests(in.Proxy.Proxy, httpFilters(in.Proxy, false, c.Protocol)))
	if c.Stat != "" {
		m.StatPrefix = c.Stat
	}
	receiving(m, hcm.HttpConnectionManager_SANITIZE_SET, true)
	m.RouteSpecifier = throughRDS(c.Route)
	m.UseRemoteAddress = wrapperspb.Bool(true)
	if m.HttpProtocolOptions == nil {
		m.HttpProtocolOptions = &core.Http1ProtocolOptions{}
	}
	in.Proxy.Settings.edge(m)
	return m
}
