package listener

import (
	"cmp"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Port is a port of the workload behind a sidecar.
type Port struct {
	// Target is where the workload listens, Number the service's port, Host the service's name.
	Target, Number uint32
	Host           string
	// Name is the port's, Short the service's short host name, Service its name.
	Name, Short, Service string
	Protocol             config.Protocol
	// TLS is how the port opens TLS of its own; nil where it doesn't.
	TLS *networking.ServerTLSSettings
	// Bind is the address that a Sidecar names for the port; empty: any.
	Bind string
	// Config is the path of the Sidecar in Istio's API.
	Config string
}

func (p Port) name(pr Proxy) string {
	return Bind{cmp.Or(p.Bind, pr.Dialing.Families.Any()[0]), p.Target}.Name()
}

// Inbound is the listener for what a workload receives.
type Inbound struct {
	// Ports of the workload, one for each target, by target.
	Ports []Port
	// Unnamed are ports that nothing names, but for which a policy says what they take.
	Unnamed []uint32
	// TLS is how clients of the mesh come.
	TLS    MeshTLS
	Guards *Guards
	Proxy  Reporting
	// Stat is the pattern of names in statistics; empty: Istio's.
	Stat string
	// Defaults are the mesh's for TLS that isn't its own.
	Defaults TLSDefaults
}

// BuildInbound makes virtualInbound: a set of filter chains for each port of the workload, for
// ports that no service names, and one that breaks loops of the proxy to itself.
func BuildInbound(in Inbound) *listenerv3.Listener {
	chains := []*listenerv3.FilterChain{blackHole(in.Proxy, "virtualInbound-blackhole", in.Proxy.Ports.Inbound)}
	for _, port := range append([]uint32{anyPort}, in.Unnamed...) {
		chains = append(chains, in.passthrough(port)...)
	}
	for _, p := range in.Ports {
		chains = append(chains, in.port(p)...)
	}
	return &listenerv3.Listener{
		Name:                                 VirtualInbound,
		Address:                              in.Proxy.everywhere(in.Proxy.Ports.Inbound),
		AdditionalAddresses:                  in.Proxy.everywhereElse(in.Proxy.Ports.Inbound),
		TrafficDirection:                     core.TrafficDirection_INBOUND,
		Transparent:                          transparent(in.Proxy.Proxy),
		FilterChains:                         chains,
		ListenerFilters:                      in.inspectors(chains),
		ListenerFiltersTimeout:               durationpb.New(in.Proxy.Settings.Detection),
		ConnectionBalanceConfig:              balance(in.Proxy.Settings.BalancedInbound),
		AccessLog:                            in.Proxy.refused(),
		ContinueOnListenerFiltersTimeout:     true,
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
}

// inspectors look into connections only where the answer decides something.
func (in *Inbound) inspectors(chains []*listenerv3.FilterChain) []*listenerv3.ListenerFilter {
	out := []*listenerv3.ListenerFilter{originalDestination()}
	if in.Proxy.Transparent {
		out = append(out, originalSource())
	}
	return append(out, inspect(chains)...)
}

// BuildInboundPort makes the listener of a port that clients dial themselves, because nothing
// intercepts their connections.
func BuildInboundPort(in Inbound, p Port) *listenerv3.Listener {
	in.Ports = []Port{p}
	at := InboundPortBind(in.Proxy.Proxy, p)
	chains := in.port(p)
	return &listenerv3.Listener{
		Name:                                 at.Name(),
		Address:                              at.address(),
		TrafficDirection:                     core.TrafficDirection_INBOUND,
		FilterChains:                         chains,
		ListenerFilters:                      inspect(chains),
		ListenerFiltersTimeout:               durationpb.New(in.Proxy.Settings.Detection),
		ConnectionBalanceConfig:              balance(in.Proxy.Settings.BalancedInbound),
		AccessLog:                            in.Proxy.refused(),
		ContinueOnListenerFiltersTimeout:     true,
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
}

// InboundPortBind is where clients dial a workload's port.
func InboundPortBind(proxy Proxy, p Port) Bind {
	return Bind{cmp.Or(p.Bind, proxy.Dialing.Families.Any()[0]), p.Target}
}

// blackHole closes connections to a port.
func blackHole(p Reporting, name string, port uint32) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		Name:             name,
		FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(port)},
		Filters:          append(networkMetadata(p.Proxy), p.dropping()...),
	}
}

// passthrough takes connections to a port that no service names, or to any such.
func (in *Inbound) passthrough(port uint32) []*listenerv3.FilterChain {
	c := chains{
		Inbound:  in,
		port:     Port{Name: VirtualInbound, Target: port},
		cluster:  cluster.InboundPassthrough,
		stat:     cluster.InboundPassthrough,
		httpName: "virtualInbound-catchall-http",
		tcpName:  VirtualInbound,
	}
	return c.build(config.Sniffed)
}

func (in *Inbound) port(p Port) []*listenerv3.FilterChain {
	name := p.name(in.Proxy.Proxy)
	c := chains{
		Inbound:  in,
		port:     p,
		cluster:  cluster.InboundName(p.Target),
		stat:     "inbound_" + name,
		httpName: name,
		tcpName:  name,
	}
	return c.build(p.Protocol)
}

// chains makes the filter chains of one port: for clients of the mesh with mutual TLS, and for
// others without.
type chains struct {
	*Inbound
	port                             Port
	cluster, stat, httpName, tcpName string
}

// build makes them: those that the port takes of the two.
func (c *chains) build(protocol config.Protocol) []*listenerv3.FilterChain {
	if protocol == config.UDP { // who connects to its number with TCP is passed on unread
		protocol = config.TCP
	}
	modes := authn.ParseModes(c.Proxy.Policies.Peers)
	mode := modes.Port(c.port.Target)
	if c.port.TLS != nil && mode == authn.Disable {
		return []*listenerv3.FilterChain{c.own(protocol)}
	}
	var out []*listenerv3.FilterChain
	if mode != authn.Disable {
		out = append(out, c.secured(protocol, mode == authn.Strict)...)
	}
	if mode != authn.Strict {
		out = append(out, c.open(protocol, mode == authn.Permissive)...)
	}
	out = slices.DeleteFunc(out, func(f *listenerv3.FilterChain) bool { return f == nil })
	if len(out) == 0 && modes.Mode != authn.Strict {
		return []*listenerv3.FilterChain{blackHole(c.Proxy, c.tcpName, c.port.Target)} // or it would be one of all other ports
	}
	return out
}

// secured are the chains for mutual TLS. strict: what comes is mutual TLS, so that nothing else
// need be told from it.
func (c *chains) secured(protocol config.Protocol, strict bool) []*listenerv3.FilterChain {
	alpn := meshAny()
	if strict {
		alpn = nil
	}
	switch {
	case protocol.IsHTTP():
		return []*listenerv3.FilterChain{c.secure(true, alpn)}
	case protocol.IsTCP():
		return []*listenerv3.FilterChain{c.secure(false, alpn)}
	case strict:
		return []*listenerv3.FilterChain{c.secure(true, meshHTTP()), c.secure(false, nil)}
	}
	return []*listenerv3.FilterChain{c.secure(true, meshHTTP()), c.secure(false, meshTCP())}
}

// open are the chains for plain text. tls: connections are looked into, so that the workload's own
// TLS needs a chain too.
func (c *chains) open(protocol config.Protocol, tls bool) []*listenerv3.FilterChain {
	if protocol.IsHTTP() {
		return []*listenerv3.FilterChain{c.plain(true, rawBuffer)}
	}
	var out []*listenerv3.FilterChain
	if !protocol.IsTCP() {
		sniffed := c.plain(true, rawBuffer)
		sniffed.FilterChainMatch = plainHTTP(c.port.Target)
		out = append(out, sniffed)
	}
	out = append(out, c.plain(false, rawBuffer))
	if tls {
		out = append(out, c.plain(false, tlsBytes))
	}
	return out
}

// secure is the chain for mutual TLS; nil where nobody serves the proxy certificates.
func (c *chains) secure(http bool, alpn []string) *listenerv3.FilterChain {
	if !c.Proxy.Certificates.Any() {
		return nil
	}
	out := c.chain(http)
	out.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: tlsBytes, ApplicationProtocols: alpn}
	atPort(out.FilterChainMatch, c.port.Target)
	out.TransportSocket = mutualTLS(http, c.TLS, c.Proxy.Certificates)
	return out
}

// own is the chain for TLS that the port itself asks for.
func (c *chains) own(protocol config.Protocol) *listenerv3.FilterChain {
	http := protocol.IsHTTP()
	out := c.chain(http)
	out.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: tlsBytes}
	atPort(out.FilterChainMatch, c.port.Target)
	out.TransportSocket = serverSocket(c.port.TLS, c.Defaults, c.Proxy.Certificates, false)
	return out
}

func (c *chains) plain(http bool, transport string) *listenerv3.FilterChain {
	out := c.chain(http)
	out.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: transport}
	atPort(out.FilterChainMatch, c.port.Target)
	return out
}

func (c *chains) chain(http bool) *listenerv3.FilterChain {
	filters := networkMetadata(c.Proxy.Proxy)
	if http {
		filters = append(filters, c.Proxy.before(c.port.Target)...)
		return &listenerv3.FilterChain{Name: c.httpName, Metadata: configMetadata(c.port.Config), Filters: append(filters, c.manager())}
	}
	filters = append(filters, c.Guards.connections(c.Proxy, c.port.Number)...)
	return &listenerv3.FilterChain{
		Name:     c.tcpName,
		Metadata: configMetadata(c.port.Config),
		Filters:  append(filters, c.Proxy.forwarding(c.toWorkload(), c.port.Protocol)...),
	}
}

// toWorkload passes bytes on to the workload.
func (c *chains) toWorkload() *tcp.TcpProxy {
	out := toCluster(c.cluster)
	if c.Stat != "" {
		out.StatPrefix = cmp.Or(cluster.StatName(c.Stat, cluster.StatOf{
			Host: c.port.Host, Short: c.port.Short, Name: c.port.Service, Port: c.port.Number, PortName: c.port.Name, Target: c.port.Target,
		}), out.StatPrefix) // chains without a service may have no word of the pattern
	}
	return out
}

// configMetadata says which resource something was made from; nil where none is given.
func configMetadata(path string) *core.Metadata {
	if path == "" {
		return nil
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": encode.Struct(map[string]any{"config": path})}}
}
