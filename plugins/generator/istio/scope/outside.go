package scope

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Outside is the cluster for requests (see cluster.ForConnections) to destinations that a scope
// doesn't know: as its Sidecar says, and otherwise as the mesh does.
func (x *Scopes) Outside(c *incr.Ctx, s Scope) string {
	if r, ok := x.tables.Sidecars.Get(c, s.Sidecar); ok && s.Sidecar != "" {
		if p := r.Value.Spec.OutboundTrafficPolicy; p != nil {
			return x.sidecarOutside(c, s, r.Value, p)
		}
	}
	switch s := x.mesh.Listeners(c); {
	case s.Dynamic:
		return cluster.AllowAnyDynamic
	case s.AllowAny:
		return cluster.Passthrough
	}
	return cluster.BlackHole
}

// LooksUp reports whether hosts that nobody knows are looked up, in the scope of a Sidecar (its
// key, empty for none).
func (x *Scopes) LooksUp(c *incr.Ctx, sidecar string) bool {
	return x.mesh.Listeners(c).Dynamic && x.Outside(c, Scope{Sidecar: sidecar}) == cluster.AllowAnyDynamic
}

func (x *Scopes) sidecarOutside(c *incr.Ctx, s Scope, from *config.Sidecar, p *networking.OutboundTrafficPolicy) string {
	switch {
	case p.Mode == networking.OutboundTrafficPolicy_REGISTRY_ONLY:
		return cluster.BlackHole
	case p.EgressProxy == nil:
		return cluster.Passthrough
	}
	name := cluster.Name{
		Host:   istio.Resolve(p.EgressProxy.Host, from.Namespace, x.domain),
		Subset: p.EgressProxy.Subset,
		Port:   p.EgressProxy.GetPort().GetNumber(),
	}
	if name.Port == 0 {
		name.Port = x.OnlyPort(c, Host{s, name.Host}, 0)
	}
	return name.String()
}
