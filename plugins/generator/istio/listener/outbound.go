package listener

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// handshake is how long a client's TLS handshake may take.
const handshake = 15 * time.Second

// Bind is where an outbound listener stands: what the workload dials, caught before it leaves.
type Bind struct {
	Address string
	Port    uint32
}

// Arrivals are the listeners that take connections to a service's port, with the chain that the service has in each. Requests are told
// apart by their host, so that HTTP services of one port share a listener; connections by where they go, or by the name in a TLS hello
// where the service has no address of its own.
func Arrivals(s *config.Service, port uint32, protocol config.Protocol) []Arrival {
	to := Chain{Cluster: cluster.Name{Port: port, Host: s.Host}.String(), Protocol: protocol}
	if protocol.IsHTTP() {
		return []Arrival{{Bind{Port: port, Address: anyAddress}, to}}
	}
	var out []Arrival
	var prefixes []string
	for _, a := range s.AllAddresses() {
		if prefix, err := netip.ParsePrefix(a); err == nil {
			prefixes = append(prefixes, prefix.Masked().String())
			continue
		}
		out = append(out, Arrival{Bind{Port: port, Address: a}, to.named(a, s.Host)})
	}
	if len(prefixes) > 0 {
		chain := to.named(anyAddress, s.Host)
		slices.Sort(prefixes)
		chain.Prefixes = strings.Join(slices.Compact(prefixes), prefixSeparator)
		out = append(out, Arrival{Bind{Port: port, Address: anyAddress}, chain})
	}
	return out
}

// Arrival is the chain that a service has in a listener.
type Arrival struct {
	Bind  Bind
	Chain Chain
}

// Chain is where connections of a listener go.
type Chain struct {
	Cluster  string
	Protocol config.Protocol
	// ServerName and Prefixes (joined by commas) say which connections; all where both are empty.
	ServerName, Prefixes string
}

const prefixSeparator = ","

// named asks for the host's name in TLS hellos where the address is not the host's own.
func (c Chain) named(address, host string) Chain {
	if c.Protocol.IsTLS() && (Bind{Address: address}).Any() {
		c.ServerName = host
	}
	return c
}

// All reports whether the chain takes every connection.
func (c Chain) All() bool { return c.ServerName == "" && c.Prefixes == "" }

// Overlaps reports whether two chains ask for the same, which Envoy refuses.
func (c Chain) Overlaps(o Chain) bool {
	if c.ServerName != o.ServerName {
		return false
	}
	theirs := strings.Split(o.Prefixes, prefixSeparator)
	return slices.ContainsFunc(strings.Split(c.Prefixes, prefixSeparator), func(p string) bool { return slices.Contains(theirs, p) })
}

// Of is where the listener stands on a proxy: where nothing is intercepted, on loopback.
func (b Bind) Of(p Proxy) Bind {
	if p.Dialed {
		b.Address = loopback
	}
	return b
}

// Name is the listener's name: ADDRESS_PORT.
func (b Bind) Name() string {
	return b.Address + "_" + strconv.FormatUint(uint64(b.Port), 10)
}

// Any reports whether the listener takes connections to every address of its port.
func (b Bind) Any() bool {
	a, err := netip.ParseAddr(b.Address)
	return err == nil && a.IsUnspecified()
}

// Outbound is a listener for what the workload sends.
type Outbound struct {
	Bind
	// HTTP: some service at it speaks HTTP, or may speak it. Protocol is that of the first such service.
	HTTP     bool
	Protocol config.Protocol
	// Route is the name of the route configuration for requests.
	Route string
	// Chains for connections that aren't HTTP; none where that can't be.
	Chains []Chain
	// Outside is the cluster for what is neither, PassthroughCluster or BlackHoleCluster.
	Outside string
	Proxy   Proxy
}

// BuildOutbound makes the listener.
func BuildOutbound(in Outbound) *listenerv3.Listener {
	in.Bind = in.Bind.Of(in.Proxy)
	l := &listenerv3.Listener{
		Name:                             in.Name(),
		Address:                          socketAddress(in.Address, in.Port),
		BindToPort:                       wrapperspb.Bool(false),
		TrafficDirection:                 core.TrafficDirection_OUTBOUND,
		ListenerFiltersTimeout:           durationpb.New(0),
		ContinueOnListenerFiltersTimeout: true,
	}
	if in.Proxy.Dialed {
		l.BindToPort = nil
		l.MaxConnectionsToAcceptPerSocketEvent = wrapperspb.UInt32(1)
	}
	if in.HTTP {
		in.addRequests(l)
	} else {
		in.addConnections(l)
	}
	return l
}

func (in *Outbound) addRequests(l *listenerv3.Listener) {
	chain := in.requests()
	l.FilterChains = append(l.FilterChains, chain)
	if in.Proxy.Dialed && len(in.Chains) == 0 {
		chain.FilterChainMatch = nil // the port is the service's own
		return
	}
	l.ListenerFilters = []*listenerv3.ListenerFilter{httpInspector()}
	l.DefaultFilterChain = in.outside()
	if len(in.Chains) > 0 {
		l.DefaultFilterChain = in.connections(in.Chains[0])
	}
}

// addConnections adds the chains, those for names first. At an address that isn't a service's own, what none takes goes on to where it was going.
func (in *Outbound) addConnections(l *listenerv3.Listener) {
	all, names := false, false
	for _, c := range in.Chains {
		l.FilterChains = append(l.FilterChains, in.connections(c))
		all, names = all || c.All(), names || c.ServerName != ""
	}
	if names {
		l.ListenerFilters = []*listenerv3.ListenerFilter{tlsInspector()}
	}
	if !all && in.Any() {
		l.DefaultFilterChain = in.outside()
	}
}

// requests is the chain for what looks like HTTP.
func (in *Outbound) requests() *listenerv3.FilterChain {
	m := connectionManager(in.Proxy, "outbound_"+in.Name(), httpFilters(in.Proxy, false, in.Protocol))
	m.RouteSpecifier = throughRDS(in.Route)
	return &listenerv3.FilterChain{
		FilterChainMatch:              plainHTTP(0),
		Filters:                       []*listenerv3.Filter{managerFilter(m)},
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
}

func (in *Outbound) connections(c Chain) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		FilterChainMatch:              c.match(),
		Filters:                       connectionFilters(c.Cluster, c.Protocol),
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
}

func (c Chain) match() *listenerv3.FilterChainMatch {
	if c.All() {
		return nil
	}
	m := &listenerv3.FilterChainMatch{}
	if c.ServerName != "" {
		m.ServerNames = []string{c.ServerName}
	}
	for _, s := range strings.Split(c.Prefixes, prefixSeparator) {
		if p, err := netip.ParsePrefix(s); err == nil {
			m.PrefixRanges = append(m.PrefixRanges, &core.CidrRange{
				AddressPrefix: p.Addr().String(),
				PrefixLen:     wrapperspb.UInt32(uint32(p.Bits())),
			})
		}
	}
	return m
}

// outside is the chain for connections that are no service's.
func (in *Outbound) outside() *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		Name:             "PassthroughFilterChain",
		FilterChainMatch: &listenerv3.FilterChainMatch{},
		Filters:          []*listenerv3.Filter{tcpProxy(in.Outside)},
	}
}

// plainHTTP matches what the inspector found to be HTTP, at a port unless 0.
func plainHTTP(port uint32) *listenerv3.FilterChainMatch {
	m := &listenerv3.FilterChainMatch{
		ApplicationProtocols: []string{"http/1.1", "h2c"},
		TransportProtocol:    rawBuffer,
	}
	atPort(m, port)
	return m
}

func atPort(m *listenerv3.FilterChainMatch, port uint32) {
	if port != 0 {
		m.DestinationPort = wrapperspb.UInt32(port)
	}
}

func socketAddress(address string, port uint32) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address:       address,
		PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
	}}}
}

// BuildVirtualOutbound makes the listener that all intercepted connections arrive at: it hands them to the listener of their
// destination, and takes what has none.
func BuildVirtualOutbound(outside string, p Proxy) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:             VirtualOutbound,
		Address:          socketAddress(anyAddress, outboundPort),
		TrafficDirection: core.TrafficDirection_OUTBOUND,
		UseOriginalDst:   wrapperspb.Bool(true),
		Transparent:      transparent(p),
		FilterChains: []*listenerv3.FilterChain{
			{
				Name:             "virtualOutbound-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(outboundPort)},
				Filters:          []*listenerv3.Filter{tcpProxy(cluster.BlackHole)},
			},
			{
				Name:    "virtualOutbound-catchall-tcp",
				Filters: []*listenerv3.Filter{tcpProxy(outside)},
			},
		},
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
	}
}

func transparent(p Proxy) *wrapperspb.BoolValue {
	if !p.Transparent {
		return nil
	}
	return wrapperspb.Bool(true)
}
