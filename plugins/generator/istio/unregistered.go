package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outsidePort is where virtual services count that name no service which a registry knows.
const outsidePort = 80

// routedKey is a virtual service (key) as one scope sees it, for what goes out by one egress listener (see via).
type routedKey struct {
	Scope   Scope
	Via     int
	Service string
}

func (g *graph) addUnregistered() {
	g.routedPorts = incr.NewFunc(g.Graph, "ports of virtual service", slices.Equal, func(c *incr.Ctx, k routedKey) ([]uint32, error) {
		v, ok := g.tables.VirtualServices.Get(c, k.Service)
		if !ok {
			return nil, incr.Absent
		}
		return g.findRoutedPorts(c, k, v.Value), nil
	})
	g.anyKnown = incr.NewFunc(g.Graph, "services of a wildcard on port", incr.Same[bool], g.findAnyKnown)
}

// findRoutedPorts are the ports of the services that a virtual service names: there it counts for
// hosts that no registry knows, too, so that one set of routes has the same hosts at each.
func (g *graph) findRoutedPorts(c *incr.Ctx, k routedKey, v *config.VirtualService) []uint32 {
	var out []uint32
	for _, h := range v.Spec.Hosts {
		for _, service := range g.servicesOf(c, k, h) {
			for _, p := range service.Ports {
				if protocol := config.ParseProtocol(p.Protocol); protocol.IsHTTP() || protocol == config.Sniffed {
					out = append(out, p.Number)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// servicesOf are the services that a host of a virtual service means: of those that a wildcard covers, such as have no closer one.
func (g *graph) servicesOf(c *incr.Ctx, k routedKey, h string) []*config.Service {
	if !istio.IsWildcard(h) {
		if service, ok := g.visible.Get(c, host{k.Scope, h}); ok {
			return []*config.Service{service}
		}
		return nil
	}
	var out []*config.Service
	for _, i := range g.hosts.Of(c, k.Scope) {
		if !istio.Covers(h, i.Key.Host) {
			continue
		}
		if list := g.servicesFor.Of(c, sought{i.Key, k.Via}); len(list) > 0 && list[0].Key == k.Service {
			out = append(out, i.Value)
		}
	}
	return out
}

// outsideHosts are virtual hosts at a port for names that virtual services route and no registry knows, and their domains. They come before
// what services are called besides their full names.
func (g *graph) outsideHosts(c *incr.Ctx, view routeView, port uint32) (hosts [][]byte, taken map[string]bool) {
	via := g.via(c, view.Scope, port)
	list := g.routedAt(c, view.Scope, via, func(ports []uint32) bool {
		return port == outsidePort || slices.Contains(ports, port)
	})
	known := func(h string) bool { return g.known(c, view.Scope, h, port) }
	return g.hostsOutside(c, view, virtualHostKey{Port: port}, list, known, nil)
}

// outsideHostsOfProxy are the same among the routes of a proxy for HTTP: for virtual services that
// name a service at the port of requests that name none. known reports whether a host is one of a
// service there.
func (g *graph) outsideHostsOfProxy(c *incr.Ctx, view routeView, via int, known func(h string) bool) (
	hosts [][]byte, taken map[string]bool) {
	list := g.routedAt(c, view.Scope, via, func(ports []uint32) bool { return slices.Contains(ports, outsidePort) })
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

// routedAt are the virtual services that count for what goes out by an egress listener, and whose
// services have such ports, in order.
func (g *graph) routedAt(c *incr.Ctx, s Scope, via int, such func(ports []uint32) bool) []*config.VirtualService {
	var list []*config.VirtualService
	for _, i := range g.atGateway.Of(c, config.MeshGateway) {
		v := i.Value.Value
		if g.imports(c, s, v, via) && such(g.routedPorts.Of(c, routedKey{s, via, v.Key})) {
			list = append(list, v)
		}
	}
	return g.inOrder(c, s.Namespace, list)
}
