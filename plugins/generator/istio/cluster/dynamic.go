package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dynamic_forward_proxy/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// AllowAnyDynamic dials whatever host a request names, for hosts that nobody knows.
const AllowAnyDynamic = "AllowAnyDynamicDNSCluster"

// allowAnyCache is the name of its cache.
const allowAnyCache = "allow_any_dynamic_dns"

// IsDynamic reports whether proxies look up the host of each request, or the name in each TLS hello, under a wildcard.
func IsDynamic(s *config.Service) bool {
	return s.Resolution == pb.ServiceResolutionDynamicDns && config.IsWildcard(s.Host)
}

// CanBeDynamic reports whether connections of a protocol say what host they are for.
func CanBeDynamic(p config.Protocol) bool { return p.IsHTTP() || p == config.TLS }

// DNSCache is what filters and the cluster of a host share. Envoy wants it to be the same wherever its name is.
func DNSCache(host string, f config.Families) *cachev3.DnsCacheConfig {
	name := host + "_dfp_dns_cache"
	if host == AllowAnyDynamic {
		name = allowAnyCache
	}
	return &cachev3.DnsCacheConfig{Name: name, DnsLookupFamily: lookupOf(f)}
}

// dynamic makes the cluster one of hosts that are looked up when they are asked for.
func dynamic(c *clusterv3.Cluster, host string, f config.Families) {
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	if c.CommonLbConfig != nil {
		c.CommonLbConfig.HealthyPanicThreshold = nil // nobody says how its hosts are
	}
	setDynamic(c, &dynamicv3.ClusterConfig{
		ClusterImplementationSpecifier: &dynamicv3.ClusterConfig_DnsCacheConfig{DnsCacheConfig: DNSCache(host, f)},
	})
}

func setDynamic(c *clusterv3.Cluster, d *dynamicv3.ClusterConfig) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: "envoy.clusters.dynamic_forward_proxy", TypedConfig: encode.Any(d),
	}}
}

// nameHosts says to each host that is looked up which one is meant, and checks that it is. Envoy refuses clusters of options that don't, unless
// they say that it is on purpose.
func (in *Outbound) nameHosts(c *clusterv3.Cluster, options *http.HttpProtocolOptions) {
	if options == nil {
		return
	}
	if options.UpstreamHttpProtocolOptions == nil && in.Policy.GetTls().GetSni() == "" {
		options.UpstreamHttpProtocolOptions = &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true}
	}
	if u := options.UpstreamHttpProtocolOptions; !u.GetAutoSni() || !u.GetAutoSanValidation() {
		setDynamic(c, &dynamicv3.ClusterConfig{
			ClusterImplementationSpecifier: &dynamicv3.ClusterConfig_DnsCacheConfig{DnsCacheConfig: DNSCache(in.Service.Host, in.Client.Families)},
			AllowInsecureClusterOptions:    true,
		})
	}
}

// BuildAllowAnyDynamic makes the cluster for hosts that nobody knows; the mesh says which TLS is spoken there.
func BuildAllowAnyDynamic(m Mesh, client Client) *clusterv3.Cluster {
	c := originalDestination(AllowAnyDynamic, m.ConnectTimeout)
	c.AltStatName = stat(AllowAnyDynamic)
	c.Filters = client.Filters.upstream()
	dynamic(c, AllowAnyDynamic, client.Families)
	in := Outbound{
		Service: &config.Service{Service: pb.Service{Host: AllowAnyDynamic}}, Policy: &networking.TrafficPolicy{Tls: m.DynamicTLS}, Mesh: m, Client: client,
		Protocol: config.HTTP,
	}
	var own httpOptions
	if in.originates() {
		in.originate(c, m.DynamicTLS, &own)
	}
	options := passthroughOptions()
	options.UpstreamHttpProtocolOptions = own.upstream
	in.nameHosts(c, options)
	setHTTP(c, options)
	return c
}

// ForConnections is the cluster for connections to destinations that nobody knows, where it is this one for requests: they name no host.
func ForConnections(outside string) string {
	if outside == AllowAnyDynamic {
		return Passthrough
	}
	return outside
}
