package cluster

import (
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const httpOptionsKey = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// BuildBlackHole makes the cluster whose requests all fail.
func BuildBlackHole(connectTimeout *durationpb.Duration) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 BlackHole,
		AltStatName:          stat(BlackHole),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       connectTimeout,
	}
}

// BuildPassthrough makes the cluster that dials where the client wanted to go.
func BuildPassthrough(m Mesh, filters Filters) *clusterv3.Cluster {
	c := originalDestination(Passthrough, m.ConnectTimeout)
	c.Filters = filters.upstream()
	m.limitPassthrough(c)
	return c
}

// limitPassthrough puts the limits of the mesh's baseline on it, but for those of the protocol
// (requests of a connection, idle connections), as istiod does.
func (m Mesh) limitPassthrough(c *clusterv3.Cluster) {
	pool := m.Baseline.GetConnectionPool()
	if pool == nil {
		return
	}
	(&Outbound{Mesh: m, Policy: &networking.TrafficPolicy{ConnectionPool: pool}}).connectionPool(c)
}

// BuildInboundPassthrough makes the cluster that dials the workload behind a sidecar at ports that
// no service names, from one of the source addresses.
func BuildInboundPassthrough(m Mesh, source []string) *clusterv3.Cluster {
	c := originalDestination(InboundPassthrough, m.ConnectTimeout)
	c.UpstreamBindConfig = bindTo(source)
	m.limitPassthrough(c)
	return c
}

func originalDestination(name string, connectTimeout *durationpb.Duration) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                          name,
		AltStatName:                   stat(Passthrough),
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
		ConnectTimeout:                connectTimeout,
		LbPolicy:                      clusterv3.Cluster_CLUSTER_PROVIDED,
		CircuitBreakers:               unlimited(),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{httpOptionsKey: encode.Any(passthroughOptions())},
	}
}

// passthroughOptions speak to servers as the client spoke.
func passthroughOptions() *http.HttpProtocolOptions {
	return &http.HttpProtocolOptions{
		CommonHttpProtocolOptions: &core.HttpProtocolOptions{IdleTimeout: durationpb.New(passthroughIdle)},
		UpstreamProtocolOptions:   downstreamProtocol(),
	}
}

// bindTo dials from the first address, or from another where that has the destination's family.
func bindTo(addresses []string) *core.BindConfig {
	out := &core.BindConfig{SourceAddress: anyPort(addresses[0])}
	for _, a := range addresses[1:] {
		out.ExtraSourceAddresses = append(out.ExtraSourceAddresses, &core.ExtraSourceAddress{Address: anyPort(a)})
	}
	return out
}

func anyPort(address string) *core.SocketAddress {
	return &core.SocketAddress{Address: address, PortSpecifier: &core.SocketAddress_PortValue{}}
}

// unlimited are circuit breakers that never break; Envoy's own default is 1024.
func unlimited() *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     wrapperspb.UInt32(math.MaxUint32),
		MaxPendingRequests: wrapperspb.UInt32(math.MaxUint32),
		MaxRequests:        wrapperspb.UInt32(math.MaxUint32),
		MaxRetries:         wrapperspb.UInt32(math.MaxUint32),
	}}}
}
