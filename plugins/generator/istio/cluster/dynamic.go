package cluster

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// AllowAnyDynamic dials whatever host a request names, for hosts that nobody knows.
const AllowAnyDynamic = "AllowAnyDynamicDNSCluster"

// Its cache has a name of its own, and a bound: clients say which hosts it holds.
const (
	allowAnyCache = "allow_any_dfp_dns_cache"
	allowAnyHosts = 1024
)

// IsDynamic reports whether proxies look up the host of each request, or the name in each TLS
// hello, under a wildcard.
func IsDynamic(s *config.Service) bool {
	return s.Resolution == pb.ServiceResolutionDynamicDns && (istio.IsWildcard(s.Host) || s.Host == AllowAnyDynamic)
}

// CanBeDynamic reports whether connections of a protocol say what host they are for.
func CanBeDynamic(p config.Protocol) bool { return p.IsHTTP() || p == config.TLS }

// DNSCache is what filters and the cluster of a host share. Envoy wants it to be the same wherever
// its name is. Hosts that nobody knows are asked for at the resolver (IP:PORT), if there is one:
// that of an agent that captures the workload's DNS.
func DNSCache(host string, f config.Families, resolver string) *cachev3.DnsCacheConfig {
	out := &cachev3.DnsCacheConfig{Name: host + "_dfp_dns_cache", DnsLookupFamily: lookupOf(f)}
	if host != AllowAnyDynamic {
		return out
	}
	out.Name, out.MaxHosts = allowAnyCache, wrapperspb.UInt32(allowAnyHosts)
	if at, err := netip.ParseAddrPort(resolver); err == nil {
		socket := &core.SocketAddress{
			Address: at.Addr().String(), PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(at.Port())},
		}
		out.TypedDnsResolverConfig = byCares(&cares.CaresDnsResolverConfig{
			Resolvers: []*core.Address{{Address: &core.Address_SocketAddress{SocketAddress: socket}}},
		})
	}
	return out
}

// byCares looks names up by c-ares.
func byCares(c *cares.CaresDnsResolverConfig) *core.TypedExtensionConfig {
	return &core.TypedExtensionConfig{Name: "envoy.network.dns_resolver.cares", TypedConfig: encode.Any(c)}
}

// dynamic makes the cluster one of hosts that are looked up when they are asked for.
func dynamic(c *clusterv3.Cluster, host string, client Client) {
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	if c.CommonLbConfig != nil {
		c.CommonLbConfig.HealthyPanicThreshold = nil // nobody says how its hosts are
	}
	setDynamic(c, &dynamicv3.ClusterConfig{
		ClusterImplementationSpecifier: &dynamicv3.ClusterConfig_DnsCacheConfig{DnsCacheConfig: DNSCache(host, client.Families, client.Resolver)},
	})
}

func setDynamic(c *clusterv3.Cluster, d *dynamicv3.ClusterConfig) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: "envoy.clusters.dynamic_forward_proxy", TypedConfig: encode.Any(d),
	}}
}

// checkHosts says by TLS to each host that is looked up which one is meant, and checks that it is,
// as far as asked.
func checkHosts(name, check bool) *core.UpstreamHttpProtocolOptions {
	if !name && !check {
		return nil
	}
	return &core.UpstreamHttpProtocolOptions{AutoSni: name, AutoSanValidation: check}
}

// nameHosts has Envoy take the options for HTTP of a cluster that looks up hosts. It refuses those
// that don't name and check each host, unless the cluster says that it is on purpose: as it does
// where TLS does without. Where there is none, they may be asked for: they mean nothing.
func (in *Outbound) nameHosts(c *clusterv3.Cluster, options *http.HttpProtocolOptions) {
	if options != nil && c.TransportSocket == nil && options.UpstreamHttpProtocolOptions == nil {
		options.UpstreamHttpProtocolOptions = checkHosts(true, true)
	}
	if u := options.GetUpstreamHttpProtocolOptions(); c.TransportSocket != nil && (!u.GetAutoSni() || !u.GetAutoSanValidation()) {
		in.insecure(c)
	}
}

// insecure says that hosts that are looked up are not named, or not checked, on purpose.
func (in *Outbound) insecure(c *clusterv3.Cluster) {
	setDynamic(c, &dynamicv3.ClusterConfig{
		ClusterImplementationSpecifier: &dynamicv3.ClusterConfig_DnsCacheConfig{
			DnsCacheConfig: DNSCache(in.Service.Host, in.Client.Families, in.Client.Resolver),
		},
		AllowInsecureClusterOptions: true,
	})
}

// BuildAllowAnyDynamic makes the cluster for hosts that nobody knows; the mesh says which TLS is
// spoken there.
func BuildAllowAnyDynamic(m Mesh, client Client) *clusterv3.Cluster {
	c := originalDestination(AllowAnyDynamic, m.ConnectTimeout)
	c.AltStatName = stat(AllowAnyDynamic)
	c.Filters = client.Filters.upstream()
	dynamic(c, AllowAnyDynamic, client)
	in := Outbound{
		Service: &config.Service{Service: pb.Service{Host: AllowAnyDynamic, Resolution: pb.ServiceResolutionDynamicDns, External: true}},
		Policy:  &networking.TrafficPolicy{Tls: m.DynamicTLS}, Mesh: m, Client: client,
		Protocol: config.HTTP,
	}
	if m.DynamicTLS == nil {
		in.insecure(c)
		setHTTP(c, passthroughOptions())
		return c
	}
	var own httpOptions
	in.transport(c, &own)
	options := own.finish(in.Protocol)
	if c.TransportSocket == nil {
		in.insecure(c)
	}
	in.nameHosts(c, options)
	setHTTP(c, options)
	return c
}

// ForConnections is the cluster for connections to destinations that nobody knows, where it is this
// one for requests: they name no host.
func ForConnections(outside string) string {
	if outside == AllowAnyDynamic {
		return Passthrough
	}
	return outside
}
