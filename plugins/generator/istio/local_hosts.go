package istio

import (
	"net"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// localHosts are the hosts of which clients reach endpoints of their own cluster alone: those that the mesh's settings say
// (serviceSettings), and Kubernetes' own, unless they say otherwise.
func localHosts(m *meshConfig, domain string) []string {
	defaults := []string{"*.kube-system.svc." + domain, "kubernetes.default.svc." + domain, controlPlane(m, domain)}
	var out []string
	for _, s := range m.ServiceSettings {
		if s.GetSettings().GetClusterLocal() {
			out = append(out, s.Hosts...)
			continue
		}
		defaults = slices.DeleteFunc(defaults, func(d string) bool {
			return slices.ContainsFunc(s.Hosts, func(h string) bool { return h == d || config.IsWildcard(d) && strings.HasSuffix(h, d[1:]) })
		})
	}
	out = append(out, defaults...)
	slices.Sort(out)
	return slices.Compact(out)
}

// controlPlane is the host at which proxies find their control plane.
func controlPlane(m *meshConfig, domain string) string {
	host, _, err := net.SplitHostPort(m.GetDefaultConfig().GetDiscoveryAddress())
	if err != nil {
		host = "istiod.istio-system.svc"
	}
	if !strings.HasSuffix(host, domain) {
		host += "." + domain
	}
	return host
}

// isLocal reports whether clients of a host reach endpoints of their own cluster alone.
func (g *graph) isLocal(c *incr.Ctx, host string) bool {
	return slices.ContainsFunc(g.localHosts.Of(c, only), func(h string) bool { return config.Covers(h, host) })
}
