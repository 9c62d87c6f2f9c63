package routes

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outsidePort is where virtual services count that name no service which a registry knows.
const outsidePort = 80

// outsideHosts are virtual hosts at a port for names that virtual services route and no registry
// knows, and their domains. They come before what services are called besides their full names.
func (x *Routes) outsideHosts(c *incr.Ctx, view View, port uint32) (hosts [][]byte, taken claims) {
	via := x.from.Scopes.Sidecars.Via(c, view.Scope, port)
	list := x.from.Scopes.RoutedAt(c, view.Scope, via, func(ports []uint32) bool {
		return port == outsidePort || slices.Contains(ports, port)
	})
	known := func(h string) bool { return x.from.Scopes.Known(c, view.Scope, h, port) }
	return x.hostsOutside(c, view, hostKey{Port: port}, list, known, nil)
}

// outsideHostsOfProxy are the same among the routes of a proxy for HTTP: for virtual services that
// name a service at the port of requests that name none. known reports whether a host is one of a
// service there.
func (x *Routes) outsideHostsOfProxy(c *incr.Ctx, view View, via int, known func(h string) bool) (
	hosts [][]byte, taken claims) {
	list := x.from.Scopes.RoutedAt(c, view.Scope, via, func(ports []uint32) bool { return slices.Contains(ports, outsidePort) })
	k := hostKey{Port: outsidePort, Whole: true}
	return x.hostsOutside(c, view, k, list, known, claims{"*": "*"})
}

// hostsOutside are virtual hosts, as the key says where, for names that virtual services route and
// that aren't known. Routes of the Gateway API have none: they are for services, at the ports that
// these have. The domains that are taken then are those that were before (nil: none) and theirs.
func (x *Routes) hostsOutside(c *incr.Ctx, view View, k hostKey, list []*config.VirtualService,
	known func(h string) bool, taken claims) ([][]byte, claims) {
	var out [][]byte
	for _, v := range list {
		if v.Route {
			continue
		}
		for _, h := range v.Spec.Hosts {
			if known(h) || len(x.services.of(c, view, v, k.asked())) == 0 {
				continue
			}
			if taken == nil {
				taken = claims{"*": "*"}
			}
			if domains := taken.claim(route.Outside(h)); len(domains) > 0 {
				k.View, k.Host, k.Domains, k.Service = x.services.sender(c, view, v.Key), h, joinDomains(domains), v.Key
				out = append(out, x.virtualHost.Of(c, k))
			}
		}
	}
	return out, taken
}
