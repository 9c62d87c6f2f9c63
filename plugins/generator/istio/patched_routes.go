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
	return [][]byte{g.patches.Set(c, k.View.Patches).Routes(patches.Side(k.View.Gateways != ""), body, k.View.servers().Sources)}
}
