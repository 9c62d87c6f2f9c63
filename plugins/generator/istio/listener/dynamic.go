package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	sniv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
)

// Lookup is a wildcard under which proxies look up the names that TLS hellos ask for; the zero
// value is none.
type Lookup struct {
	Host string
	// Port is where connections go on.
	Port uint32
}

// lookups look up the hosts of requests under these wildcards, right before the router sends them.
func lookups(filters []*hcm.HttpFilter, wildcards []string, d config.Dialing) []*hcm.HttpFilter {
	if len(wildcards) == 0 {
		return filters
	}
	last := len(filters) - 1
	out := append([]*hcm.HttpFilter{}, filters[:last]...)
	for _, w := range wildcards {
		out = append(out, httpFilter("envoy.filters.http.dynamic_forward_proxy", &dynamicv3.FilterConfig{
			ImplementationSpecifier: &dynamicv3.FilterConfig_DnsCacheConfig{DnsCacheConfig: cluster.DNSCache(w, d.Families, d.Resolver)},
		}))
	}
	return append(out, filters[last])
}

// byName looks up the name in a TLS hello; nothing for no wildcard.
func (l Lookup) byName(d config.Dialing) []*listenerv3.Filter {
	if l.Host == "" {
		return nil
	}
	return []*listenerv3.Filter{networkFilter("envoy.extensions.filters.network.sni_dynamic_forward_proxy", &sniv3.FilterConfig{
		DnsCacheConfig: cluster.DNSCache(l.Host, d.Families, d.Resolver), PortSpecifier: &sniv3.FilterConfig_PortValue{PortValue: l.Port},
	})}
}

// unknownHosts is the chain of virtualOutbound for requests to hosts that nobody knows, which are
// looked up.
func unknownHosts(p Reporting) *listenerv3.FilterChain {
	var none *Guards
	filters := lookups(none.requests(p, 0, httpFilters(p, false, config.HTTP)), []string{cluster.AllowAnyDynamic}, p.Dialing)
	host := route.AllowAny(cluster.AllowAnyDynamic, false)
	m := connectionManager(p, "outbound_"+VirtualOutbound+"_"+host.Name, filters)
	m.RouteSpecifier = inline(route.Inline(host.Name, host))
	return &listenerv3.FilterChain{
		Name:             "virtualOutbound-catchall-tcp-http",
		FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: plainHTTP(0).ApplicationProtocols},
		Filters:          []*listenerv3.Filter{p.Settings.finished(m)},
	}
}
