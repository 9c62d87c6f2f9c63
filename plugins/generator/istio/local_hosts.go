package istio

import (
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// localHost says of a host, or of those that a wildcard covers, whether clients reach endpoints of their own cluster alone.
type localHost struct {
	Host  string
	Local bool
}

// localHosts are what the mesh's settings say of hosts (serviceSettings), and Kubernetes' own, which are local unless they say otherwise.
func localHosts(m *meshConfig, domain string) []localHost {
	local := map[string]bool{}
	defaults := []string{"*.kube-system.svc." + domain, "kubernetes.default.svc." + domain, controlPlane(m, domain)}
	for _, s := range m.ServiceSettings {
		is := s.GetSettings().GetClusterLocal()
		for _, h := range s.Hosts {
			local[h] = is
		}
		if !is {
			defaults = slices.DeleteFunc(defaults, func(d string) bool {
				return slices.ContainsFunc(s.Hosts, func(h string) bool { return h == d || config.IsWildcard(d) && strings.HasSuffix(h, d[1:]) })
			})
		}
	}
	for _, d := range defaults {
		local[d] = true
	}
	var out []localHost
	for _, h := range slices.Sorted(maps.Keys(local)) {
		out = append(out, localHost{h, local[h]})
	}
	return out
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

// isLocal reports whether clients of a host reach endpoints of their own cluster alone. What is said of the host itself counts, otherwise the longest wildcard.
func (g *graph) isLocal(c *incr.Ctx, host string) bool {
	var best localHost
	for _, l := range g.localHosts.Of(c, only) {
		if l.Host == host {
			return l.Local
		}
		if len(l.Host) > len(best.Host) && config.Covers(l.Host, host) {
			best = l
		}
	}
	return best.Local
}
