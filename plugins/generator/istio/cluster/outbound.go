// Package cluster makes Envoy clusters: one for each port of a service and each subset of it, and
// those that every proxy has.
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
	// Certificates is where the proxies have theirs.
	Certificates encode.Certificates
	// Shown names the credential that their Gateway shows to backends; empty: none.
	Shown string
	// Router: a gateway, which has no original destination to follow.
	Router bool
	// Families of the proxies' addresses.
	Families config.Families
	// Resolver looks up hosts that nobody knows, at IP:PORT; empty: that of the system.
	Resolver string
	// Zones: they know how their own kind is spread over zones.
	Zones bool
}

// Outbound is all that an outbound cluster is made from.
type Outbound struct {
	Name     Name
	Service  *config.Service
	Protocol config.Protocol
	// Policy is the rule's policy for this port and subset, RulePath the rule's path in Istio's
	// API.
	Policy   *networking.TrafficPolicy
	RulePath string
	// Selected: the rule is for the workload of the proxy alone.
	Selected bool
	// Original: a subset of what goes to the address that the client dialed (see OriginalSubset).
	Original bool
	// Identities are the SPIFFE names that the service's workloads may have, sorted.
	Identities []string
	// Refuses: not all of them take the mesh's mutual TLS, so that clients don't try unless told
	// to.
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
	Zones          *networking.ZoneAwareLoadBalancerSetting
	// DynamicTLS is spoken to hosts that nobody knows and that proxies look up.
	DynamicTLS *networking.ClientTLSSettings
	// TLS is for TLS that is not the mesh's own.
	TLS *meshv1.MeshConfig_TLSConfig
	// Baseline is what counts where no rule says otherwise (MeshConfig.defaultTrafficPolicy).
	Baseline *meshv1.MeshConfig_DefaultTrafficPolicy
	// OutboundStat and InboundStat are patterns of names in statistics (see StatName); empty:
	// Istio's.
	OutboundStat, InboundStat string
}

// BuildOutbound makes the cluster, nil where the service can't be reached at all.
func BuildOutbound(in Outbound) *clusterv3.Cluster {
	name := in.Name.String()
	c := &clusterv3.Cluster{
		Name:            name,
		AltStatName:     in.stat(),
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
	if in.Name.Datagrams {
		in.datagrams(c)
		return c
	}
	in.sessions(c)
	if in.Name.ByName {
		setHTTP(c, http.finish(in.Protocol)) // TLS goes through unopened; as in istiod, the protocol in it is said all the same
		return c
	}
	in.transport(c, &http)
	in.introduce(c)
	options := http.finish(in.Protocol)
	if IsDynamic(in.Service) {
		in.nameHosts(c, options)
		if proto.Size(c.CommonLbConfig) == 0 {
			c.CommonLbConfig = nil
		}
	}
	setHTTP(c, options)
	return c
}

// mostClients bounds the clients' ports of which datagrams go to a cluster at once, where no rule
// does (maxConnections): each takes a socket of the proxy's, and who sends may say to be another
// one.
const mostClients = 1 << 16

// datagrams leaves out of a cluster what is about connections: datagrams go as they came.
func (in *Outbound) datagrams(c *clusterv3.Cluster) {
	c.UpstreamConnectionOptions, c.Filters = nil, nil
	if in.Policy.GetConnectionPool().GetTcp().GetMaxConnections() <= 0 {
		c.CircuitBreakers.Thresholds[0].MaxConnections = wrapperspb.UInt32(mostClients)
	}
}

// sessions lets requests go to endpoints that drain, if a session says so. The cluster of a subset
// has no sessions, as in istiod.
func (in *Outbound) sessions(c *clusterv3.Cluster) {
	if _, ok := in.Service.Session(); ok && in.Name.Subset == "" && !in.Name.ByName {
		c.CommonLbConfig.OverrideHostStatus = &core.HealthStatusSet{Statuses: []core.HealthStatus{
			core.HealthStatus_HEALTHY, core.HealthStatus_DRAINING, core.HealthStatus_UNKNOWN, core.HealthStatus_DEGRADED,
		}}
	}
}

// stat names the cluster in statistics.
func (in *Outbound) stat() string {
	if in.Mesh.OutboundStat == "" {
		return stat(in.Name.String())
	}
	return stat(StatName(in.Mesh.OutboundStat, TowardsService(in.Service, in.Name.Port, in.Name.Subset)))
}

// TowardsService is what names are made of for connections to a service's port.
func TowardsService(s *config.Service, port uint32, subset string) StatOf {
	out := StatOf{Host: s.Host, Short: ShortHost(s.Registry, s.Host, s.Name, s.Namespace), Name: s.Name, Port: port, Subset: subset}
	if p := s.Port(port); p != nil {
		out.PortName = p.Name
	}
	return out
}

func (in *Outbound) metadata() *core.Metadata {
	s := in.Service
	istio := map[string]any{}
	if s.External && in.Name.Subset == "" {
		istio["external"] = true
	}
	if in.originates() {
		istio["alpn_override"] = "false"
	}
	if IsDynamic(s) {
		return metadata(istio, in.RulePath, in.Name.Subset)
	}
	return metadata(istio, in.RulePath, in.Name.Subset, Service{Host: s.Host, Name: s.Name, Namespace: s.Namespace})
}

// Resolves reports whether proxies look up the service's endpoints in DNS, so that they stand in
// the cluster itself.
func Resolves(s *config.Service) bool {
	return s.Resolution == pb.ServiceResolutionDns || s.Resolution == pb.ServiceResolutionDnsRoundRobin
}

// UsesEDS reports whether the cluster's endpoints come by EDS.
func UsesEDS(s *config.Service, policy *networking.TrafficPolicy, router bool) bool {
	if passes(policy) {
		return false
	}
	return s.Resolution == pb.ServiceResolutionStatic || s.Resolution == pb.ServiceResolutionNone && router
}

// PassesThrough reports whether requests go to whatever address the client dialed, as far as mutual
// TLS is concerned: what settings of ports say doesn't count, nor what a rule says of its subsets.
func PassesThrough(s *config.Service, rule *networking.DestinationRule, subset string) bool {
	policy := rule.GetTrafficPolicy()
	if subset != "" {
		policy = FindSubset(rule, subset).GetTrafficPolicy()
	}
	return s.Resolution == pb.ServiceResolutionNone || passes(policy)
}

// OriginalSubset reports whether a subset's cluster goes to whatever address the client dialed: if
// the subset says so, or if all of the port's requests do, whatever the subset says.
func OriginalSubset(rule *networking.DestinationRule, subset string, port uint32) bool {
	return subset != "" && (passes(PolicyFor(rule, "", port)) || passes(FindSubset(rule, subset).GetTrafficPolicy()))
}

func passes(policy *networking.TrafficPolicy) bool {
	return policy.GetLoadBalancer().GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
}

func (in *Outbound) discover(c *clusterv3.Cluster) {
	switch {
	case in.Original:
		in.originalDestination(c)
	case Resolves(in.Service):
		in.discoverDNS(c)
	case IsDynamic(in.Service):
		dynamic(c, in.Service.Host, in.Client)
	case UsesEDS(in.Service, in.Policy, in.Client.Router):
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: c.Name, EdsConfig: overADS()}
	default:
		in.originalDestination(c)
	}
}

func (in *Outbound) originalDestination(c *clusterv3.Cluster) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	redirect(c, Redirected(in.Service, in.Name.Port))
}

// Redirected is the port that is dialled in place of a service's, where clients' own destination
// counts and the service says so; 0: the same.
func Redirected(s *config.Service, port uint32) uint32 {
	p := s.Port(port)
	if s.Resolution != pb.ServiceResolutionNone || s.Registry == config.Kubernetes || p == nil {
		return 0
	}
	return p.Target
}

// redirect dials another port than the client did, but for 0.
func redirect(c *clusterv3.Cluster, port uint32) {
	if port == 0 {
		return
	}
	c.LbConfig = &clusterv3.Cluster_OriginalDstLbConfig_{
		OriginalDstLbConfig: &clusterv3.Cluster_OriginalDstLbConfig{UpstreamPortOverride: wrapperspb.UInt32(port)},
	}
}

// lookupOf is what proxies with addresses of these families ask DNS for.
func lookupOf(f config.Families) clusterv3.Cluster_DnsLookupFamily {
	switch f {
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
	c.DnsLookupFamily = lookupOf(in.Client.Families)
	c.DnsRefreshRate = in.Mesh.DNSRefresh
	c.DnsJitter = durationpb.New(dnsJitter)
	c.RespectDnsTtl = true
	// Some resolvers limit what one socket may ask: a new one now and then.
	c.TypedDnsResolverConfig = byCares(&cares.CaresDnsResolverConfig{UdpMaxQueries: wrapperspb.UInt32(udpQueries)})
	c.LoadAssignment = in.Endpoints
}

// overADS says that a resource comes on the stream that named it, and that the proxy waits for it
// as long as it takes.
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
		proto.Equal(m.DNSRefresh, o.DNSRefresh) && proto.Equal(m.Locality, o.Locality) && proto.Equal(m.Zones, o.Zones) &&
		proto.Equal(m.DynamicTLS, o.DynamicTLS) &&
		proto.Equal(m.TLS, o.TLS) && m.AutoMTLS == o.AutoMTLS && m.UpgradeHTTP2 == o.UpgradeHTTP2 &&
		proto.Equal(m.Baseline, o.Baseline) && m.OutboundStat == o.OutboundStat && m.InboundStat == o.InboundStat
}
