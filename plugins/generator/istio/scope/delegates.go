package scope

import (
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func sameVirtualService(a, b *config.VirtualService) bool {
	return a == b || a.Meta == b.Meta && proto.Equal(a.Spec, b.Spec) && slices.EqualFunc(a.Delegations, b.Delegations, sameDelegation)
}

func sameDelegation(a, b *config.Delegation) bool {
	return a == b || a != nil && b != nil && a.To == b.To &&
		slices.EqualFunc(a.Match, b.Match, func(a, b *networking.HTTPMatchRequest) bool { return proto.Equal(a, b) })
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
