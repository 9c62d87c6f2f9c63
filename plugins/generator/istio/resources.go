package istio

import (
	"bytes"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// lists are the small sets of resources that aren't collections: those that every proxy has, and a workload's own.
type lists struct {
	staticClusters   *incr.Func[clientKey, []sdk.Resource]
	inboundClusters  *incr.Func[inboundClusterKey, []sdk.Resource]
	fixedListeners   *incr.Func[fixedKey, []sdk.Resource]
	gatewayListeners *incr.Func[gatewaySet, []sdk.Resource]
}

// fixedKey is what virtualInbound and virtualOutbound depend on: Outside is the cluster for what no service is.
type fixedKey struct {
	Inbound inboundKey
	Outside string
}

// gatewaySet is the listeners of Gateways on a proxy.
type gatewaySet struct {
	Servers gatewayKey
	// Scope is what their routes see.
	Scope Scope
	Proxy listener.Proxy
	// Unprivileged: the proxy can't open low ports, and is asked to.
	Unprivileged bool
}

func sameResources(a, b []sdk.Resource) bool {
	return slices.EqualFunc(a, b, func(x, y sdk.Resource) bool { return x.Name == y.Name && bytes.Equal(x.Body, y.Body) })
}

func (g *graph) addLists() {
	g.staticClusters = incr.NewFunc(g.Graph, "static clusters", sameResources, func(c *incr.Ctx, k clientKey) ([]sdk.Resource, error) {
		var out []sdk.Resource
		for _, name := range staticNames(k) {
			out = append(out, sdk.Resource{Name: name, Body: g.static.Of(c, staticKey{name, k})})
		}
		return out, nil
	})
	g.inboundClusters = incr.NewFunc(g.Graph, "inbound clusters", sameResources, func(c *incr.Ctx, k inboundClusterKey) ([]sdk.Resource, error) {
		if k.Ingress.named() {
			return g.ingressClusters(c, k), nil
		}
		var out []sdk.Resource
		for _, group := range byPort(decodeTargets(k.Targets)) {
			if b, ok := g.behind.Get(c, inboundClusterKey{encodeTargets(group), k.Ingress, k.Families, k.SameCase}); ok {
				out = append(out, sdk.Resource{Name: inboundName(group[0]), Body: b})
			}
		}
		return out, nil
	})
	g.fixedListeners = incr.NewFunc(g.Graph, "fixed listeners", sameResources, func(c *incr.Ctx, k fixedKey) ([]sdk.Resource, error) {
		own := g.ownListeners(c, k.Inbound)
		if k.Inbound.Proxy.Dialed {
			return own, nil
		}
		return append([]sdk.Resource{
			{Name: listener.VirtualInbound, Body: g.inbound.Of(c, k.Inbound)},
			{Name: listener.VirtualOutbound, Body: g.outbound.virtual.Of(c, virtualKey{k.Inbound.Proxy.Sending(), k.Outside})},
		}, own...), nil
	})
	g.gatewayListeners = incr.NewFunc(g.Graph, "gateway listeners", sameResources, func(c *incr.Ctx, k gatewaySet) ([]sdk.Resource, error) {
		return g.gatewayList(c, k), nil
	})
}
