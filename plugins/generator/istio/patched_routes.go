package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// patchedRoute is a route configuration after patches.
func (g *graph) patchedRoute(c *incr.Ctx, k routeKey) [][]byte {
	plain := k
	plain.View.Patches = ""
	fields, ok := g.route.Get(c, plain)
	if !ok {
		return nil
	}
	body := slices.Concat(fields...)
	return [][]byte{g.patches.Set(c, k.View.Patches).Routes(patches.Side(k.View.Gateways != ""), body, parsePorts(k.View.Ports).sources)}
}

// sources are the ports of Gateways that are served at a port of the proxy.
func (m portMap) sources(at uint32) []uint32 {
	var out []uint32
	for _, p := range m {
		if p.Target == at {
			out = append(out, p.Number)
		}
	}
	return out
}
