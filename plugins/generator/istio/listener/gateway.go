package listener

import (
	"net/netip"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
)

// Gateway is a listener of a gateway.
type Gateway struct {
	Bind
	Chains []GatewayChain
	Guards *Guards
	Proxy  Reporting
	TLS    TLSDefaults
	// Internal are the ranges of addresses whose clients are believed in what they say of requests;
	// Envoy's if none.
	Internal []netip.Prefix
}

// GatewayChain is what happens to some of the connections.
type GatewayChain struct {
	// Names in TLS hellos by which clients ask for it; a `*` among them means any, as does none.
	// Protocols that they offer there; any if empty.
	Names, Protocols []string
	// TLS is how the proxy opens TLS; nil where it doesn't.
	TLS      *networking.ServerTLSSettings
	Protocol config.Protocol
	// Route is the name of the route configuration, where requests are read, and Stat names them in
	// statistics (empty: as the listener).
	Route, Stat string
	// Forward is where bytes go, where they aren't, and Port what extensions for connections know
	// as their port: the one that the server names, or the service's where the bytes go by its
	// name.
	Forward Forward
	Port    uint32
	// Unguarded: policies don't count, because what passes is TLS of the mesh, which its receiver
	// judges.
	Unguarded bool
}

// Requests reports whether requests are read.
func (c *GatewayChain) Requests() bool { return c.Route != "" }

// BuildGateway makes the listener.
func BuildGateway(in Gateway) *listenerv3.Listener {
	out := &listenerv3.Listener{
		Name:                                 in.Name(),
		Address:                              socketAddress(in.Address, in.Port),
		AdditionalAddresses:                  in.elsewhere(),
		TrafficDirection:                     core.TrafficDirection_OUTBOUND,
		PerConnectionBufferLimitBytes:        in.Proxy.Settings.buffer(),
		ConnectionBalanceConfig:              balance(in.Proxy.Settings.BalancedOutbound),
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
		AccessLog:                            in.Proxy.refused(),
		ListenerFilters:                      in.Proxy.Settings.front(),
	}
	for _, c := range in.Chains {
		chain := in.chain(c)
		if c.TLS != nil {
			chain.TransportSocket = serverSocket(c.TLS, in.TLS, in.Proxy.Certificates, !c.Requests())
		}
		out.FilterChains = append(out.FilterChains, chain)
	}
	if slices.ContainsFunc(in.Chains, func(c GatewayChain) bool { return len(c.Names) > 0 || c.TLS != nil }) {
		out.ListenerFilters = append(out.ListenerFilters, tlsInspector())
	}
	return out
}

// elsewhere is where it stands besides, with dual stack, if it stands everywhere.
func (in *Gateway) elsewhere() []*listenerv3.AdditionalAddress {
	if !in.Any() {
		return nil
	}
	return in.Proxy.everywhereElse(in.Port)
}

func (in *Gateway) chain(c GatewayChain) *listenerv3.FilterChain {
	out := &listenerv3.FilterChain{
		FilterChainMatch:              c.Match(),
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
	if c.Requests() {
		out.Filters = append(in.Proxy.before(in.Port), in.Proxy.Settings.finished(in.manager(c)))
		return out
	}
	if c.TLS.GetMode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
		out.Filters = append(out.Filters, networkMetadata(in.Proxy.Proxy)...)
	}
	guards := in.Guards
	if c.Unguarded {
		guards = nil
	}
	out.Filters = append(out.Filters, guards.connections(in.Proxy, c.Port)...)
	out.Filters = append(out.Filters, c.Forward.filters(in.Proxy, c.Protocol)...)
	return out
}

// internal are the addresses of the mesh's networks.
func internal(ranges []netip.Prefix) *hcm.HttpConnectionManager_InternalAddressConfig {
	out := &hcm.HttpConnectionManager_InternalAddressConfig{}
	for _, p := range ranges {
		out.CidrRanges = append(out.CidrRanges, &core.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))})
	}
	if len(out.CidrRanges) == 0 {
		return nil
	}
	return out
}

// Match says which connections the chain is for; nil: all.
func (c *GatewayChain) Match() *listenerv3.FilterChainMatch {
	return gateway.Match(c.Names, c.Protocols)
}

func (in *Gateway) manager(c GatewayChain) *hcm.HttpConnectionManager {
	m := connectionManager(in.Proxy, "outbound_"+in.Name(), in.Guards.requests(in.Proxy, in.Port, httpFilters(in.Proxy, false, c.Protocol)))
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
	m.InternalAddressConfig = internal(in.Internal)
	return m
}
