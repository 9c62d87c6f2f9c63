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
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// handshake is how long a client's TLS handshake may take.
const handshake = 15 * time.Second

// Bind is where an outbound listener stands: what the workload dials, caught before it leaves. An
// address may be a Unix socket (unix:PATH); it has no port.
type Bind struct {
	Address string
	Port    uint32
}

// Dialer is what the place of a listener depends on of the proxy.
type Dialer struct {
	config.Dialing
	// Dialed: the workload dials the listener itself.
	Dialed bool
	// Ports are those that the proxy has for itself.
	Ports Ports
}

// Arrivals are the listeners that take connections to a service's port, with the chains that the
// service has in each: one for each range of addresses that is its own. Requests are told apart by
// their host, so that HTTP services of one port share a listener; connections by where they go, or
// by the name in a TLS hello where the service has no address of its own.
func Arrivals(s *config.Service, port uint32, protocol config.Protocol, d Dialer) []Arrival {
	to := Chain{Cluster: cluster.Name{Port: port, Host: s.Host}.String(), Protocol: protocol}
	if d.Dialed {
		home := d.Families.Loopback()
		return []Arrival{at(home, port, to.named(home[0], s.AddressesFor(d.Dialing)[0], s.Host))}
	}
	everywhere := d.Families.Any()
	if protocol.IsHTTP() {
		return []Arrival{at(everywhere, port, to)}
	}
	var out []Arrival
	for _, a := range destinations(s, d.Dialing) {
		place, chain := a, to.named(a[0], a[0], s.Host)
		if prefix, err := netip.ParsePrefix(a[0]); err == nil {
			place, chain = everywhere, to.named(everywhere[0], a[0], s.Host)
			chain.Prefixes = prefix.String()
		} else if cluster.IsDynamic(s) {
			chain.ServerName = s.Host // the name in the hello says where to go
		}
		if !hosts.IsPartial(chain.ServerName) { // Envoy refuses a listener that asks for such a name
			out = append(out, at(place, port, chain))
		}
	}
	return out
}

// destinations are the addresses of a service, those of one listener together.
func destinations(s *config.Service, d config.Dialing) [][]string {
	addresses := s.AddressesFor(d)
	switch {
	case (Bind{Address: addresses[0]}).Any() && d.Families == config.Both && s.Registry == config.Kubernetes:
		return [][]string{d.Families.Any()[:1]} // without dual stack, connections to a cluster's services are taken in one family
	case (Bind{Address: addresses[0]}).Any():
		return [][]string{d.Families.Any()}
	case d.Families == config.Dual && s.OneListener():
		return [][]string{addresses}
	}
	var out [][]string
	for _, a := range addresses {
		out = append(out, []string{a})
	}
	return out
}

// ArrivalAt is the listener at a place that a Sidecar names: an address, or a Unix socket, whose
// port is 0. address is the service's own. What comes by a Unix socket goes to the one port of a
// service; of several nobody knows which is meant.
func ArrivalAt(s *config.Service, port uint32, protocol config.Protocol, b Bind, address string) Arrival {
	if b.Port == 0 && len(s.Ports) > 1 {
		port = 0
	}
	to := Chain{Cluster: cluster.Name{Port: port, Host: s.Host}.String(), Protocol: protocol}
	return Arrival{Bind: b, Chain: to.named(b.Address, address, s.Host)}
}

func at(addresses []string, port uint32, c Chain) Arrival {
	return Arrival{Bind{Port: port, Address: addresses[0]}, strings.Join(addresses[1:], separator), c}
}

// Arrival is the chain that a service has in a listener.
type Arrival struct {
	Bind Bind
	// More addresses at which the listener stands, joined by commas.
	More  string
	Chain Chain
}

// Chain is where connections of a listener go.
type Chain struct {
	Cluster  string
	Protocol config.Protocol
	// ServerName and Prefixes (each several, joined by commas) say which connections; all where
	// both are empty. A range of every IPv4 address says nothing.
	ServerName, Prefixes string
	// Route of a virtual service that says where connections go; none: to Cluster.
	Route Route
}

// Route names a route of a virtual service.
type Route struct {
	// Service is the virtual service's key; empty for none.
	Service string
	// TLS: it is one for server names. Index is its place in the list, Port where connections come.
	TLS   bool
	Index int
	Port  uint32
	// PortName is the port's name.
	PortName string
	// Narrow: only some destinations take it.
	Narrow bool
}

// OutboundChain is a chain with what its connections meet.
type OutboundChain struct {
	Chain
	Forward Forward
	// Config is the path of the virtual service that says so; empty without.
	Config string
}

const separator = ","

// named asks for the host's name in TLS hellos where the place of a listener doesn't say that the
// host is meant: where its own address is a range, or any and the listener takes all.
func (c Chain) named(place, address, host string) Chain {
	everywhere := Bind{Address: address}.Any() && Bind{Address: place}.Any()
	if c.Protocol.IsTLS() && (everywhere || strings.Contains(address, "/")) {
		c.ServerName = host
	}
	return c
}

// All reports whether the chain takes every connection.
func (c Chain) All() bool { return c.ServerName == "" && c.Prefixes == "" }

// Overlaps reports whether two chains ask for the same, which Envoy refuses; it doesn't heed the
// case of names. One that takes every connection is the default, and stands apart.
func (c Chain) Overlaps(o Chain) bool {
	return c.All() == o.All() && share(strings.ToLower(c.ServerName), strings.ToLower(o.ServerName)) && share(c.ranges(), o.ranges())
}

// Fits reports whether Envoy takes what the chain asks for by itself.
func (c Chain) Fits() bool { return envoyrules.Connections{}.Claim(c.match()) == nil }

// ranges are the prefixes that say something, in the form that equal ones have in common.
func (c Chain) ranges() string {
	var out []string
	for _, p := range c.prefixes() {
		out = append(out, p.Masked().String())
	}
	return strings.Join(out, separator)
}

func (c Chain) prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range strings.Split(c.Prefixes, separator) {
		if p, err := netip.ParsePrefix(s); err == nil && p.Addr() != netip.IPv4Unspecified() {
			out = append(out, p)
		}
	}
	return out
}

// share reports whether two lists have a word in common, or are both empty.
func share(a, b string) bool {
	theirs := strings.Split(b, separator)
	return slices.ContainsFunc(strings.Split(a, separator), func(p string) bool { return slices.Contains(theirs, p) })
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
	// More addresses at which it stands, joined by commas.
	More string
	// Dialed: the workload dials the listener itself.
	Dialed bool
	// HTTP: some service at it speaks HTTP, or may speak it. Protocol is that of the first such
	// service. Sniffed: only what looks like HTTP is read as such.
	HTTP, Sniffed bool
	Protocol      config.Protocol
	// Route is the name of the route configuration for requests.
	Route string
	// Forwards: requests name their destination in full, as towards a proxy.
	Forwards bool
	// Chains for connections that aren't HTTP; none where that can't be.
	Chains []OutboundChain
	// Lookups are wildcards under which hosts of requests are looked up.
	Lookups []string
	// Outside is the cluster for requests to hosts that nobody knows (see cluster.ForConnections).
	Outside string
	Proxy   Reporting
}

// BuildOutbound makes the listener.
func BuildOutbound(in Outbound) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name:                             in.Name(),
		Address:                          in.address(),
		AdditionalAddresses:              in.more(),
		BindToPort:                       wrapperspb.Bool(false),
		TrafficDirection:                 core.TrafficDirection_OUTBOUND,
		ListenerFilters:                  in.inspectors(),
		ListenerFiltersTimeout:           durationpb.New(0),
		ContinueOnListenerFiltersTimeout: true,
		ConnectionBalanceConfig:          balance(in.Proxy.Settings.BalancedOutbound),
	}
	if in.HTTP && in.Sniffed {
		l.ListenerFiltersTimeout = durationpb.New(in.Proxy.Settings.Detection)
	}
	if in.Dialed {
		l.BindToPort = nil
		l.MaxConnectionsToAcceptPerSocketEvent = wrapperspb.UInt32(1)
	}
	in.addChains(l)
	return l
}

func (b Bind) address() *core.Address {
	if path, ok := hosts.Path(b.Address); ok {
		return &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: path}}}
	}
	return socketAddress(b.Address, b.Port)
}

func (in *Outbound) more() []*listenerv3.AdditionalAddress {
	if in.More == "" {
		return nil
	}
	return additional(strings.Split(in.More, separator), in.Port)
}

func additional(addresses []string, port uint32) []*listenerv3.AdditionalAddress {
	var out []*listenerv3.AdditionalAddress
	for _, a := range addresses {
		out = append(out, &listenerv3.AdditionalAddress{Address: socketAddress(a, port)})
	}
	return out
}

// inspectors look into connections only where the answer decides something.
func (in *Outbound) inspectors() []*listenerv3.ListenerFilter {
	var out []*listenerv3.ListenerFilter
	if slices.ContainsFunc(in.Chains, func(c OutboundChain) bool { return c.ServerName != "" }) {
		out = append(out, tlsInspector())
	}
	if in.HTTP && in.Sniffed {
		out = append(out, httpInspector())
	}
	return out
}

// addChains adds a chain for requests and those for connections. What takes everything comes last,
// where there is more than that; where nothing does, what no chain takes goes on to where it was
// going.
func (in *Outbound) addChains(l *listenerv3.Listener) {
	add := func(c *listenerv3.FilterChain) {
		if c.FilterChainMatch == nil {
			l.DefaultFilterChain = c
		} else {
			l.FilterChains = append(l.FilterChains, c)
		}
	}
	if in.HTTP {
		add(in.requests())
	}
	for _, c := range in.Chains {
		add(in.connections(c))
	}
	switch {
	case l.DefaultFilterChain == nil:
		l.DefaultFilterChain = in.outside()
	case len(l.FilterChains) == 0:
		l.FilterChains, l.DefaultFilterChain = []*listenerv3.FilterChain{l.DefaultFilterChain}, nil
	}
}

// requests is the chain for what looks like HTTP.
func (in *Outbound) requests() *listenerv3.FilterChain {
	var none *Guards
	wildcards := in.Lookups
	if in.Outside == cluster.AllowAnyDynamic {
		wildcards = append(slices.Clone(wildcards), in.Outside)
	}
	filters := lookups(none.requests(in.Proxy, in.Port, httpFilters(in.Proxy, false, in.Protocol)), wildcards, in.Proxy.Dialing)
	m := connectionManager(in.Proxy, "outbound_"+in.Name(), filters)
	m.RouteSpecifier = throughRDS(in.Route)
	if in.Forwards {
		allowAbsolute(m)
	}
	out := &listenerv3.FilterChain{
		Filters:                       append(in.Proxy.before(in.Port), in.Proxy.Settings.finished(m)),
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
	if in.Sniffed {
		out.FilterChainMatch = plainHTTP(0)
	}
	return out
}

func (in *Outbound) connections(c OutboundChain) *listenerv3.FilterChain {
	var none *Guards
	return &listenerv3.FilterChain{
		FilterChainMatch:              c.match(),
		Filters:                       append(none.connections(in.Proxy, in.Port), c.Forward.filters(in.Proxy, c.Protocol)...),
		TransportSocketConnectTimeout: durationpb.New(handshake),
		Metadata:                      origin(c.Config),
	}
}

// origin names the resource that something was made from, where istioctl reads it; nil without.
func origin(path string) *core.Metadata {
	if path == "" {
		return nil
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": encode.Struct(map[string]any{"config": path})}}
}

func (c Chain) match() *listenerv3.FilterChainMatch {
	if c.All() {
		return nil
	}
	m := &listenerv3.FilterChainMatch{}
	if c.ServerName != "" {
		m.ServerNames = distinct(strings.Split(c.ServerName, separator))
	}
	seen := map[netip.Prefix]bool{}
	for _, p := range c.prefixes() {
		if seen[p.Masked()] {
			continue
		}
		seen[p.Masked()] = true
		m.PrefixRanges = append(m.PrefixRanges, &core.CidrRange{
			AddressPrefix: p.Addr().String(),
			PrefixLen:     wrapperspb.UInt32(uint32(p.Bits())),
		})
	}
	return m
}

// distinct are names without those that are there already in any case.
func distinct(names []string) []string {
	seen := envoyrules.Domains{}
	return slices.DeleteFunc(names, func(n string) bool { return !seen.Take(n) })
}

// outside is the chain for connections that are no service's.
func (in *Outbound) outside() *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		Name:             "PassthroughFilterChain",
		FilterChainMatch: &listenerv3.FilterChainMatch{},
		Filters:          in.Proxy.passing(cluster.ForConnections(in.Outside), config.TCP),
	}
}

// plainProtocols are the inspector's words for HTTP.
func plainProtocols() []string { return []string{"http/1.1", "h2c"} }

func isPlainProtocol(name string) bool { return slices.Contains(plainProtocols(), name) }

// plainHTTP matches what the inspector found to be HTTP, at a port unless 0.
func plainHTTP(port uint32) *listenerv3.FilterChainMatch {
	m := &listenerv3.FilterChainMatch{
		ApplicationProtocols: plainProtocols(),
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
