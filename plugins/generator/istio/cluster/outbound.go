// Package cluster makes Envoy clusters: one for each port of a service and each subset of it, and those that every proxy has.
package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// udpQueries is after how many lookups the resolver opens a new socket.
const udpQueries = 100

// Client is what a cluster depends on of the proxies that use it.
type Client struct {
	Filters Filters
	// NoAgent: nobody serves the proxies their certificates, so that nothing may wait for them.
	NoAgent bool
	// Router: a gateway, which has no original destination to follow.
	Router bool
	// Families of the proxies' addresses.
	Families config.Families
}

// Outbound is all that an outbound cluster is made from.
type Outbound struct {
	Name     Name
	Service  *config.Service
	Protocol config.Protocol
	// Policy is the rule's policy for this port and subset, RulePath the rule's path in Istio's API.
	Policy   *networking.TrafficPolicy
	RulePath string
	// Selected: the rule is for the workload of the proxy alone.
	Selected bool
	// Identities are the SPIFFE names that the service's workloads may have, sorted.
	Identities []string
	// Refuses: not all of them take the mesh's mutual TLS, so that clients don't try unless told to.
	Refuses bool
	Mesh    Mesh
	Client  Client
	// Endpoints are wanted where the proxy resolves names itself (see Resolves).
	Endpoints *endpointv3.ClusterLoadAssignment
}

// Mesh is what clusters depend on of the mesh's settings.
type Mesh struct {
	ConnectTimeout *durationpb.Duration
	TCPKeepalive   *networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive
	AutoMTLS       bool
	UpgradeHTTP2   bool
	DNSRefresh     *durationpb.Duration
	Locality       *networking.LocalityLoadBalancerSetting
	// TLS is for TLS that is not the mesh's own.
	TLS *meshv1.MeshConfig_TLSConfig
}

// BuildOutbound makes the cluster, nil where the service can't be reached at all.
func BuildOutbound(in Outbound) *clusterv3.Cluster {
	name := in.Name.String()
	c := &clusterv3.Cluster{
		Name:            name,
		AltStatName:     stat(name),
		ConnectTimeout:  in.Mesh.ConnectTimeout,
		CommonLbConfig:  &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{}},
		CircuitBreakers: unlimited(),
		Filters:         in.Client.Filters.upstream(),
		Metadata:        in.metadata(),
	}
	in.discover(c)
	http := in.connectionPool(c)
	in.loadBalancer(c)
	in.outliers(c)
	in.localities(c)
	if in.Name.ByName {
		setHTTP(c, http.finish(config.TCP)) // what is in the connections is for the two ends to know
		return c
	}
	in.transport(c, &http)
	in.introduce(c)
	setHTTP(c, http.finish(in.Protocol))
	return c
}

func (in *Outbound) metadata() *core.Metadata {
	s := in.Service
	m := metadata(in.RulePath, in.Name.Subset, Service{Host: s.Host, Name: s.Name, Namespace: s.Namespace})
	istio := m.FilterMetadata["istio"].Fields
	if s.External {
		istio["external"] = boolValue(true)
	}
	if in.originates() {
		istio["alpn_override"] = stringValue("false")
	}
	return m
}

// Resolves reports whether proxies look up the service's endpoints in DNS, so that they stand in the cluster itself.
func Resolves(s *config.Service) bool {
	return s.Resolution == pb.ServiceResolutionDns || s.Resolution == pb.ServiceResolutionDnsRoundRobin
}

// UsesEDS reports whether the cluster's endpoints come by EDS.
func UsesEDS(s *config.Service, policy *networking.TrafficPolicy, router bool) bool {
	if policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH && !router {
		return false
	}
	return s.Resolution == pb.ServiceResolutionStatic || s.Resolution == pb.ServiceResolutionNone && router
}

// PassesThrough reports whether requests go to whatever address the client dialed.
func PassesThrough(s *config.Service, policy *networking.TrafficPolicy) bool {
	return s.Resolution == pb.ServiceResolutionNone ||
		policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
}

func (in *Outbound) discover(c *clusterv3.Cluster) {
	switch {
	case Resolves(in.Service):
		in.discoverDNS(c)
	case UsesEDS(in.Service, in.Policy, in.Client.Router):
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: c.Name, EdsConfig: overADS()}
	default:
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	}
}

// lookup is what proxies ask DNS for.
func (c *Client) lookup() clusterv3.Cluster_DnsLookupFamily {
	switch c.Families {
	case config.IPv6:
		return clusterv3.Cluster_V6_ONLY
	case config.Dual:
		return clusterv3.Cluster_ALL
	}
	return clusterv3.Cluster_V4_ONLY
}

func (in *Outbound) discoverDNS(c *clusterv3.Cluster) {
	kind := clusterv3.Cluster_STRICT_DNS
	if in.Service.Resolution == pb.ServiceResolutionDnsRoundRobin {
		kind = clusterv3.Cluster_LOGICAL_DNS
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: kind}
	c.DnsLookupFamily = in.Client.lookup()
	c.DnsRefreshRate = in.Mesh.DNSRefresh
	c.DnsJitter = durationpb.New(dnsJitter)
	c.RespectDnsTtl = true
	c.TypedDnsResolverConfig = &core.TypedExtensionConfig{
		Name: "envoy.network.dns_resolver.cares",
		// Some resolvers limit what one socket may ask: a new one now and then.
		TypedConfig: encode.Any(&cares.CaresDnsResolverConfig{UdpMaxQueries: wrapperspb.UInt32(udpQueries)}),
	}
	c.LoadAssignment = in.Endpoints
}

// overADS says that a resource comes on the stream that named it, and that the proxy waits for it as long as it takes.
func overADS() *core.ConfigSource {
	return &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(0),
		ResourceApiVersion:    core.ApiVersion_V3,
	}
}

// Equal reports whether clusters made with either are the same.
func (m Mesh) Equal(o Mesh) bool {
	return proto.Equal(m.ConnectTimeout, o.ConnectTimeout) && proto.Equal(m.TCPKeepalive, o.TCPKeepalive) &&
		proto.Equal(m.DNSRefresh, o.DNSRefresh) && proto.Equal(m.Locality, o.Locality) && proto.Equal(m.TLS, o.TLS) && m.AutoMTLS == o.AutoMTLS && m.UpgradeHTTP2 == o.UpgradeHTTP2
}
