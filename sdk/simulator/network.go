package simulator

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	sniclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_cluster/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
)

// network runs a chain's filters.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/listeners/network_filters/network_filters
func (w *walk) network(c *listenerv3.FilterChain) {
	for _, f := range c.Filters {
		if w.out.Verdict != "" {
			return
		}
		config := w.extension(f.Name, f.GetTypedConfig(), f.GetConfigDiscovery())
		var (
			hcm  hcmv3.HttpConnectionManager
			tcp  tcpv3.TcpProxy
			rbac networkrbacv3.RBAC
			sni  sniclusterv3.SniCluster
		)
		switch {
		case typed(config, &hcm):
			w.http(&hcm)
		case typed(config, &tcp):
			w.tcp(&tcp)
		case typed(config, &rbac):
			w.networkRBAC(&rbac)
		case typed(config, &sni), f.Name == "envoy.filters.network.sni_cluster":
			w.named = w.sni
		case harmless(config):
		default:
			w.assume("network filter %s lets the connection through", f.Name)
		}
	}
	if w.out.Verdict == "" {
		w.end(Closed, "filter chain %q has no filter that takes the connection", c.Name)
	}
}

func (w *walk) networkRBAC(r *networkrbacv3.RBAC) {
	if r.Matcher != nil {
		w.assume("the matching tree of a network filter (RBAC) lets the connection through")
	}
	if denied, policy := decide(w, r.Rules); denied {
		w.end(Closed, "RBAC refuses the connection: %s", because(r.Rules, policy))
	}
}

// tcp follows a TCP proxy.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto
func (w *walk) tcp(p *tcpv3.TcpProxy) {
	var shares []Share
	weighted, total := p.GetWeightedClusters().GetClusters(), uint32(0)
	for _, c := range weighted {
		total += c.Weight
	}
	switch {
	case w.named != "":
		shares = []Share{w.share(w.named, 100, p.MetadataMatch)}
	case len(weighted) > 0:
		for _, c := range weighted {
			shares = append(shares, w.share(c.Name, percent(c.Weight, total), merged(p.MetadataMatch, c.MetadataMatch)))
		}
	default:
		shares = []Share{w.share(p.GetCluster(), 100, p.MetadataMatch)}
	}
	w.out.Upstream.Clusters = shares
	for _, s := range shares {
		w.step("TCP proxy", s.Cluster, "%s", fmt.Sprintf("%g %%", s.Percent))
	}
	if some(shares, func(s Share) bool { return s.Fault == "" }) {
		w.end(Forwarded, "the connection goes through")
		return
	}
	w.end(Closed, "%s: %s", shares[0].Cluster, shares[0].Fault)
}

func percent(weight, total uint32) float64 {
	if total == 0 {
		return 0
	}
	return 100 * float64(weight) / float64(total)
}
