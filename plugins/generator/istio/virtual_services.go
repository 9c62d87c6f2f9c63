package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func (g *graph) indexServices() {
	g.serviceByHost = incr.NewIndex(g.virtualServices, "virtual services by host", func(_ string, r row[*config.VirtualService]) []string {
		if !r.value.Serves(config.MeshGateway) {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(r.value.Spec.Hosts), config.IsWildcard)
	})
	g.wildServices = incr.NewIndex(g.virtualServices, "wildcard virtual services", func(_ string, r row[*config.VirtualService]) []string {
		if r.value.Serves(config.MeshGateway) && slices.ContainsFunc(r.value.Spec.Hosts, config.IsWildcard) {
			return []string{only}
		}
		return nil
	})
	g.atGateway = incr.NewIndex(g.virtualServices, "virtual services by gateway", func(_ string, r row[*config.VirtualService]) []string {
		return r.value.Spec.Gateways
	})
	g.serviceFor = incr.NewFunc(g.Graph, "virtual service for host", samePointer[config.VirtualService], g.findService)
	g.addUnregistered()
}

// findService is the virtual service that routes a sidecar's requests for a host: the oldest that names it, otherwise the one with the
// most specific wildcard.
func (g *graph) findService(c *incr.Ctx, h host) (*config.VirtualService, error) {
	var best *config.VirtualService
	for _, i := range g.serviceByHost.Of(c, h.Host) {
		if v := i.Value.value; g.imports(c, h.Scope, v) && (best == nil || v.Before(best.Meta) < 0) {
			best = v
		}
	}
	if best != nil {
		return best, nil
	}
	var by string
	for _, i := range g.wildServices.Of(c, only) {
		v := i.Value.value
		if !g.imports(c, h.Scope, v) {
			continue
		}
		for _, w := range v.Spec.Hosts {
			if !config.IsWildcard(w) || !config.Covers(w, h.Host) {
				continue
			}
			if best == nil || config.MoreSpecific(w, by) < 0 || w == by && v.Before(best.Meta) < 0 {
				best, by = v, w
			}
		}
	}
	if best == nil {
		return nil, incr.Absent
	}
	return best, nil
}

// imports reports whether a virtual service counts in a scope.
func (g *graph) imports(c *incr.Ctx, s Scope, v *config.VirtualService) bool {
	if !v.VisibleIn(s.Namespace, g.exports.Of(c, only).virtualServices) {
		return false
	}
	list := g.egressOf(c, s)
	return len(list) == 0 || slices.ContainsFunc(list, func(l egressListener) bool { return l.importsRoutes(v) })
}

// known reports whether a host, or one that a wildcard covers, is a service at a port in the scope.
func (g *graph) known(c *incr.Ctx, s Scope, h string, port uint32) bool {
	if !config.IsWildcard(h) {
		service, ok := g.visible.Get(c, host{s, h})
		return ok && service.Port(port) != nil
	}
	return slices.ContainsFunc(g.onPort.Of(c, scopePort{s, port}), func(i incr.Item[hostPort, *config.Service]) bool {
		return config.Covers(h, i.Key.Host)
	})
}
