package listener

import (
	"net/netip"
	"strconv"
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

// BindFor is the listener that takes connections to a service's port. Requests are told apart by their host, so that HTTP
// services of one port share a listener; connections only by where they go.
func BindFor(s *config.Service, port uint32, protocol config.Protocol) Bind {
	if protocol.IsHTTP() {
		return Bind{Port: port, Address: anyAddress}
	}
	return Bind{Port: port, Address: s.Address()}
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
	// Connections go to Cluster where they aren't HTTP; empty where that can't be.
	Cluster         string
	ClusterProtocol config.Protocol
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
	if in.HTTP && in.Proxy.Dialed && in.Cluster == "" {
		chain := in.requests()
		chain.FilterChainMatch = nil // the port is the service's own
		l.FilterChains = append(l.FilterChains, chain)
		return l
	}
	if in.HTTP {
		l.FilterChains = append(l.FilterChains, in.requests())
		l.ListenerFilters = []*listenerv3.ListenerFilter{httpInspector()}
		l.DefaultFilterChain = in.rest()
		return l
	}
	l.FilterChains = append(l.FilterChains, in.connections())
	return l
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

func (in *Outbound) connections() *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		Filters:                       connectionFilters(in.Cluster, in.ClusterProtocol),
		TransportSocketConnectTimeout: durationpb.New(handshake),
	}
}

// rest is the chain for connections that don't look like HTTP: to the service whose port it is, or on to where they were going.
func (in *Outbound) rest() *listenerv3.FilterChain {
	if in.Cluster != "" {
		return in.connections()
	}
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
