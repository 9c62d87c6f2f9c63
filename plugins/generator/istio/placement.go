package istio

import (
	"net/netip"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// placed is the views that a proxy is in. They hold results of what generation asks about it, so that proxies with the same
// answers share them.
type placed struct {
	Clusters  clusterView
	Endpoints endpointView
	Listeners listenerView
	Routes    routeView
	Names     nameView
}

// clusterView: the outbound clusters of a set, and those behind the workload's own ports.
type clusterView struct {
	Set     clusterSet
	Targets string
	Ingress ingressKey
	// ByName: a gateway passes TLS on to the cluster that the server name says.
	ByName bool
}

// listenerView: the outbound listeners of a set and virtualInbound, or the listeners of gateways.
type listenerView struct {
	Set listenerSet
	// Targets are the workload's ports, Outside the cluster for what no service is; of sidecars.
	Targets, Outside string
	Ingress          ingressKey
	Router           bool
	// Policies that count for it; of sidecars (those of routers are in Set.Proxy).
	Policies listener.Policies
	// Servers of Gateways; of routers. Unprivileged: the proxy can't open low ports.
	Servers      gatewayKey
	Unprivileged bool
}

func (g *graph) addPlacement() {
	g.placement = incr.NewFunc(g.Graph, "placement", incr.Same[placed], func(c *incr.Ctx, connection uint64) (placed, error) {
		n, ok := g.proxies.Get(c, connection)
		if !ok {
			return placed{}, incr.Absent
		}
		if n.Type == node.Router {
			return g.placeRouter(c, n), nil
		}
		return g.placeSidecar(c, n), nil
	})
}

func (g *graph) placeSidecar(c *incr.Ctx, n *node.Node) placed {
	labels := g.labelsOf(c, n)
	scope := Scope{n.Namespace, g.sidecarFor(c, n.Namespace, labels), g.selectedBy(c, n.Namespace, labels)}
	ingress := g.ingressOf(c, scope, n)
	place, byName := g.placeOf(c, n, labels)
	targets := ""
	if n.Metadata.Interception != node.None {
		targets = encodeTargets(g.targets.Of(c, targetsKey{strings.Join(n.Addresses, ","), n.Namespace}))
	}
	return placed{
		Clusters:  clusterView{Set: clusterSet{scope, g.clientOf(c, n, byName)}, Targets: targets, Ingress: ingress},
		Endpoints: endpointView{Scope: scope, Place: place},
		Listeners: listenerView{
			Set:      listenerSet{scope, g.listenerProxy(c, n, labels), g.selfOf(c, n), selections(c, g.connectionSelectors, labels)},
			Targets:  targets,
			Ingress:  ingress,
			Outside:  g.outside(c, scope),
			Policies: g.policiesOf(c, n, labels),
		},
		Routes: routeView{Scope: scope, Domain: n.Domain, Dialing: g.dialing(n), Selections: selections(c, g.selectors, labels)},
		Names:  nameView{scope, g.nameClient(n)},
	}
}

func (g *graph) placeRouter(c *incr.Ctx, n *node.Node) placed {
	labels := g.labelsOf(c, n)
	scope := Scope{Namespace: n.Namespace, Selected: g.selectedBy(c, n.Namespace, labels)}
	servers := g.gatewayServers(c, n, labels)
	view := routeView{Scope: scope, Selections: selections(c, g.selectors, labels), Gateways: servers.Gateways, Ports: servers.Ports}
	if view.Gateways == "" {
		view.Gateways = noGateway
	}
	groups := g.groups.Of(c, servers)
	_, byName := gateway.Names(groups)
	place, near := g.placeOf(c, n, labels)
	return placed{
		Clusters:  clusterView{Set: clusterSet{scope, g.clientOf(c, n, near)}, ByName: byName},
		Endpoints: endpointView{Scope: scope, Router: true, Place: place},
		Listeners: listenerView{
			Set: listenerSet{Scope: scope, Proxy: g.listenerProxy(c, n, labels)}, Router: true, Servers: servers,
			Unprivileged: n.Metadata.Unprivileged && asksPrivileges(groups),
		},
		Routes: view,
		Names:  nameView{scope, g.nameClient(n)},
	}
}

// noGateway keeps the routes of a gateway that nothing selects apart from those of sidecars; no key is like it.
const noGateway = "-"

func (g *graph) clientOf(c *incr.Ctx, n *node.Node, locality string) clientKey {
	return clientKey{
		SameCase:         g.proxyConfig(c, n).GetProxyHeaders().GetPreserveHttp1HeaderCase().GetValue(),
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		NoAgent:          n.Metadata.NoAgent,
		Router:           n.Type == node.Router,
		Families:         g.dialing(n).Families,
		Locality:         locality,
	}
}

// selfOf is the proxy's own address where a service without addresses of its own has it as an endpoint; connections to oneself need no
// listener.
func (g *graph) selfOf(c *incr.Ctx, n *node.Node) string {
	self := n.Addresses[0]
	for _, e := range g.atAddress.Of(c, self) {
		s, ok := g.services.Get(c, e.Value.value.ServiceKey())
		if ok && isHeadless(s.value, g.dialing(n)) {
			return self
		}
	}
	return ""
}

func (g *graph) listenerProxy(c *incr.Ctx, n *node.Node, labels map[string]string) listener.Proxy {
	out := listener.Proxy{
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		ALPN:             n.Supports("istio.alpn"),
		NoAgent:          n.Metadata.NoAgent,
		Dialed:           n.Type == node.Sidecar && n.Metadata.Interception == node.None,
		Transparent:      n.Type == node.Sidecar && n.Metadata.Interception == node.TProxy,
		Dialing:          g.dialing(n),
		Paths:            g.listenerSettings.Of(c, only).paths,
		Router:           n.Type == node.Router,
		Stats:            n.Supports("istio.stats"),
		Telemetry:        g.telemetryOf(c, n.Namespace, labels),
		Settings:         g.settingsOf(c, n),
	}
	out.Tracing = g.tracingOf(c, n, labels, out.Telemetry)
	if n.Type == node.Router {
		out.Policies = g.policiesOf(c, n, labels)
	}
	return out
}

// labelsOf are the labels that a registry has for the proxy's address, otherwise those that it says it has.
func (g *graph) labelsOf(c *incr.Ctx, n *node.Node) map[string]string {
	if e := g.registered(c, n); e != nil {
		return e.Labels
	}
	return n.Labels
}

// registered is what a registry has at the proxy's address; nil without. A loopback address says nothing of who is there.
func (g *graph) registered(c *incr.Ctx, n *node.Node) *endpoint.Endpoint {
	for _, a := range n.Addresses {
		if ip, err := netip.ParseAddr(a); err != nil || ip.IsLoopback() {
			continue
		}
		for _, e := range g.atAddress.Of(c, a) {
			if ep := e.Value.value; ep.Namespace == n.Namespace {
				return ep
			}
		}
	}
	return nil
}
