package scope

import (
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// addDelegates adds virtual services (by key) with the routes of those that they delegate to.
func (x *Scopes) addDelegates(graph *incr.Graph) {
	x.Whole = incr.NewFunc(graph, "virtual service with delegates", sameVirtualService,
		func(c *incr.Ctx, key string) (*config.VirtualService, error) {
			r, ok := x.tables.VirtualServices.Get(c, key)
			if !ok {
				return nil, incr.Absent
			}
			if !route.Delegates(r.Value) {
				return r.Value, nil
			}
			return route.WithDelegates(r.Value, func(key string) *config.VirtualService { return x.delegate(c, r.Value, key) }), nil
		})
}

func sameVirtualService(a, b *config.VirtualService) bool {
	return a == b || a.Meta == b.Meta && proto.Equal(a.Spec, b.Spec)
}

// delegate is a virtual service that another may delegate to: one without hosts, which the other's namespace sees.
func (x *Scopes) delegate(c *incr.Ctx, root *config.VirtualService, key string) *config.VirtualService {
	d, ok := x.tables.VirtualServices.Get(c, key)
	if !ok || len(d.Value.Spec.Hosts) > 0 || !d.Value.MayDelegate(root.Namespace, x.mesh.Exports(c).VirtualServices) {
		return nil
	}
	return d.Value
}
