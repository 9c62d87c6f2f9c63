package scope

import (
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func sameVirtualService(a, b *config.VirtualService) bool {
	return a == b || a.Meta == b.Meta && proto.Equal(a.Spec, b.Spec)
}

// delegate is a virtual service that another may delegate to: one without hosts, which the other's
// namespace sees.
func (x *VirtualServices) delegate(c *incr.Ctx, root *config.VirtualService, key string) *config.VirtualService {
	d, ok := x.rows.Get(c, key)
	if !ok || len(d.Value.Spec.Hosts) > 0 || !d.Value.MayDelegate(root.Namespace, x.mesh.Exports(c).VirtualServices) {
		return nil
	}
	return d.Value
}
