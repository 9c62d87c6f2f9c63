package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outsidePort is where virtual services count that name no service which a registry knows.
const outsidePort = 80

// outsideHosts are virtual hosts at a port for names that virtual services route and no registry knows, and their domains. They come before
// what services are called besides their full names.
func (g *graph) outsideHosts(c *incr.Ctx, view routeView, port uint32) (hosts [][]byte, taken map[string]bool) {
	via := g.scopes.Via(c, view.Scope, port)
	list := g.scopes.RoutedAt(c, view.Scope, via, func(ports []uint32) bool {
		return port == outsidePort || slices.Contains(ports, port)
	})
	known := func(h string) bool { return g.scopes.Known(c, view.Scope, h, port) }
	return g.hostsOutside(c, view, virtualHostKey{Port: port}, list, known, nil)
}

// outsideHostsOfProxy are the same among the routes of a proxy for HTTP: for virtual services that
// name a service at the port of requests that name none. known reports whether a host is one of a
// service there.
func (g *graph) outsideHostsOfProxy(c *incr.Ctx, view routeView, via int, known func(h string) bool) (
	hosts [][]byte, taken map[string]bool) {
	list := g.scopes.RoutedAt(c, view.Scope, via, func(ports []uint32) bool { return slices.Contains(ports, outsidePort) })
	k := virtualHostKey{Port: outsidePort, Whole: true}
	return g.hostsOutside(c, view, k, list, known, map[string]bool{"*": true})
}

// hostsOutside are virtual hosts, as the key says where, for names that virtual services route and
// that aren't known. The domains that are taken then are those that were before (nil: none) and
// theirs.
func (g *graph) hostsOutside(c *incr.Ctx, view routeView, k virtualHostKey, list []*config.VirtualService,
	known func(h string) bool, taken map[string]bool) ([][]byte, map[string]bool) {
	var out [][]byte
	for _, v := range list {
		for _, h := range v.Spec.Hosts {
			if known(h) || len(g.routesOf(c, view, v, k.asked())) == 0 {
				continue
			}
			if taken == nil {
				taken = map[string]bool{"*": true}
			}
			if domains := claim(taken, route.Outside(h)); len(domains) > 0 {
				k.View, k.Host, k.Domains, k.Service = g.sender(c, view, v.Key), h, joinDomains(domains), v.Key
				out = append(out, g.virtualHost.Of(c, k))
			}
		}
	}
	return out, taken
}
