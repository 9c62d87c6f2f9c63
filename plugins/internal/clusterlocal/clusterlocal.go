// Package clusterlocal says of which hosts clients reach endpoints of their own cluster alone.
//
// Source: Istio API, MeshConfig.serviceSettings; Istio, "Understanding multicluster traffic".
package clusterlocal

import (
	"maps"
	"net"
	"slices"
	"strings"

	api "istio.io/api/mesh/v1alpha1"
)

// Host says of a host, or of those that a wildcard covers, whether it is local.
type Host struct {
	Host  string
	Local bool
}

// Hosts are what the mesh's settings say of hosts, and Kubernetes' own, which are local unless they
// say otherwise. domain is the clusters' DNS domain.
func Hosts(m *api.MeshConfig, domain string) []Host {
	local := map[string]bool{}
	defaults := []string{"*.kube-system.svc." + domain, "kubernetes.default.svc." + domain, controlPlane(m, domain)}
	for _, s := range m.GetServiceSettings() {
		is := s.GetSettings().GetClusterLocal()
		for _, h := range s.Hosts {
			local[h] = is
		}
		if !is {
			defaults = slices.DeleteFunc(defaults, func(d string) bool {
				return slices.ContainsFunc(s.Hosts, func(h string) bool { return h == d || d[0] == '*' && strings.HasSuffix(h, d[1:]) })
			})
		}
	}
	for _, d := range defaults {
		local[d] = true
	}
	var out []Host
	for _, h := range slices.Sorted(maps.Keys(local)) {
		out = append(out, Host{h, local[h]})
	}
	return out
}

// controlPlane is the host at which proxies find their control plane.
func controlPlane(m *api.MeshConfig, domain string) string {
	host, _, err := net.SplitHostPort(m.GetDefaultConfig().GetDiscoveryAddress())
	if err != nil {
		host = "istiod.istio-system.svc"
	}
	if !strings.HasSuffix(host, domain) {
		host += "." + domain
	}
	return host
}

// Has reports whether a host is local. What is said of the host itself counts, otherwise the
// longest wildcard.
func Has(hosts []Host, host string) bool {
	var best Host
	for _, h := range hosts {
		if h.Host == host {
			return h.Local
		}
		if rest, ok := strings.CutPrefix(h.Host, "*"); ok && len(h.Host) > len(best.Host) && strings.HasSuffix(strings.TrimPrefix(host, "*"), rest) {
			best = h
		}
	}
	return best.Local
}
