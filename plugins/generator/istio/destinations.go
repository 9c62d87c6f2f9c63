package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// addDestinations indexes virtual services by the hosts that they lead to. A Sidecar that imports one imports its destinations too.
func (g *graph) addDestinations() {
	g.destinations = incr.NewIndex(g.virtualServices, "virtual services by destination", func(_ string, r row[*config.VirtualService]) []string {
		if !r.value.Serves(config.MeshGateway) {
			return nil
		}
		return destinationsOf(r.value.Spec)
	})
}

func destinationsOf(s *networking.VirtualService) []string {
	var out []string
	add := func(d *networking.Destination) {
		if d != nil {
			out = append(out, d.Host)
		}
	}
	for _, h := range s.Http {
		for _, d := range h.Route {
			add(d.Destination)
		}
		add(h.Mirror)
		for _, m := range h.Mirrors {
			add(m.Destination)
		}
	}
	for _, t := range s.Tcp {
		for _, d := range t.Route {
			add(d.Destination)
		}
	}
	for _, t := range s.Tls {
		for _, d := range t.Route {
			add(d.Destination)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// routedTo reports whether a virtual service that a scope imports leads to a host.
func (g *graph) routedTo(c *incr.Ctx, s Scope, host string) bool {
	return slices.ContainsFunc(g.destinations.Of(c, host), func(i incr.Item[string, row[*config.VirtualService]]) bool {
		return g.imports(c, s, i.Value.value)
	})
}
