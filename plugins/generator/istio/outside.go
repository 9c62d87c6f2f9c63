package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outside is the cluster for requests (see cluster.ForConnections) to destinations that a scope doesn't know: as its Sidecar says, and otherwise as the mesh does.
func (g *graph) outside(c *incr.Ctx, s Scope) string {
	if r, ok := g.tables.Sidecars.Get(c, s.Sidecar); ok && s.Sidecar != "" {
		if p := r.Value.Spec.OutboundTrafficPolicy; p != nil {
			return g.sidecarOutside(c, s, r.Value, p)
		}
	}
	switch s := g.mesh.Listeners(c); {
	case s.Dynamic:
		return cluster.AllowAnyDynamic
	case s.AllowAny:
		return cluster.Passthrough
	}
	return cluster.BlackHole
}

// looksUp reports whether hosts that nobody knows are looked up, in the scope of a Sidecar (its key, empty for none).
func (g *graph) looksUp(c *incr.Ctx, sidecar string) bool {
	return g.mesh.Listeners(c).Dynamic && g.outside(c, Scope{Sidecar: sidecar}) == cluster.AllowAnyDynamic
}

func (g *graph) sidecarOutside(c *incr.Ctx, s Scope, from *config.Sidecar, p *networking.OutboundTrafficPolicy) string {
	switch {
	case p.Mode == networking.OutboundTrafficPolicy_REGISTRY_ONLY:
		return cluster.BlackHole
	case p.EgressProxy == nil:
		return cluster.Passthrough
	}
	name := cluster.Name{
		Host:   istio.Resolve(p.EgressProxy.Host, from.Namespace, g.domain),
		Subset: p.EgressProxy.Subset,
		Port:   p.EgressProxy.GetPort().GetNumber(),
	}
	if name.Port == 0 {
		name.Port = g.onlyPort(c, host{s, name.Host}, 0)
	}
	return name.String()
}
