package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// lists are the small sets of resources that aren't collections: those that every proxy has, and a workload's own.
type lists struct {
	fixedListeners   *incr.Func[fixedKey, []sdk.Resource]
	gatewayListeners *incr.Func[gatewaySet, []sdk.Resource]
	additions        *patches.Additions
}

// fixedKey is what virtualInbound and virtualOutbound depend on: Outside is the cluster for what no service is.
type fixedKey struct {
	Inbound inboundKey
	Outside string
	// Patches change them (patches.Keys).
	Patches string
}

// gatewaySet is the listeners of Gateways on a proxy.
type gatewaySet struct {
	Servers gateways.Key
	// Scope is what their routes see.
	Scope scope.Scope
	Proxy listener.Proxy
	// Unprivileged: the proxy can't open low ports, and is asked to.
	Unprivileged bool
	// Patches change them (patches.Keys).
	Patches string
}

func (g *graph) addLists() {
	g.fixedListeners = patches.List[fixedKey]{
		Name:    "fixed listeners",
		Plain:   g.fixedList,
		Patches: func(k *fixedKey) *string { return &k.Patches },
		Patch: func(_ *incr.Ctx, set *envoyfilter.Set, k fixedKey, r sdk.Resource) ([]byte, bool) {
			if r.Name == listener.VirtualOutbound || r.Name == proxyBind(k.Inbound.Proxy.Sending()).Name() {
				return set.Listener(networking.EnvoyFilter_SIDECAR_OUTBOUND, r.Body)
			}
			return set.Listener(networking.EnvoyFilter_SIDECAR_INBOUND, r.Body)
		},
	}.Add(g.Graph, g.patches)
	g.gatewayListeners = patches.List[gatewaySet]{
		Name:    "gateway listeners",
		Plain:   g.gatewayList,
		Patches: func(k *gatewaySet) *string { return &k.Patches },
		Patch: func(_ *incr.Ctx, set *envoyfilter.Set, _ gatewaySet, r sdk.Resource) ([]byte, bool) {
			return set.Listener(networking.EnvoyFilter_GATEWAY, r.Body)
		},
	}.Add(g.Graph, g.patches)
	g.additions = patches.NewAdditions(g.Graph, g.patches)
}

// fixedList are the listeners of a sidecar's own side.
func (g *graph) fixedList(c *incr.Ctx, k fixedKey) []sdk.Resource {
	out := append(g.ownListeners(c, k.Inbound), g.proxyListener(c, k.Inbound.Proxy.Sending(), k.Outside)...)
	if k.Inbound.Proxy.Dialed {
		return out
	}
	return append(out,
		sdk.Resource{Name: listener.VirtualInbound, Body: g.inbound.Of(c, k.Inbound)},
		sdk.Resource{Name: listener.VirtualOutbound, Body: g.outbound.virtual.Of(c, virtualKey{k.Inbound.Proxy.Sending(), k.Outside})})
}
