package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametable"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
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
	// Extensions are configurations of filters.
	Extensions extensionView
}

// clusterView: the outbound clusters of a set, and those behind the workload's own ports.
type clusterView struct {
	Set     clusters.Set
	Targets string
	Ingress ingress.Key
	// ByName: a gateway passes TLS on to the cluster that the server name says.
	ByName bool
}

// nameView: name tables.
type nameView nametables.View

// routeView: route configurations.
type routeView routes.View

// endpointView: load assignments.
type endpointView clusters.EndpointView

// listenerView: the outbound listeners of a set and virtualInbound, or the listeners of gateways.
type listenerView struct {
	Set listeners.Set
	// Targets are the workload's ports, Outside the cluster for what no service is; of sidecars.
	Targets, Outside string
	Ingress          ingress.Key
	Router           bool
	// Policies that count for it; of sidecars (those of routers are in Set.Proxy).
	Policies listener.Policies
	// Servers of Gateways; of routers. Unprivileged: the proxy can't open low ports.
	Servers      gateways.Key
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
	labels := g.workloads.Labels(c, n)
	scope := g.scopes.Of(c, n.Namespace, g.scopes.SidecarFor(c, n.Namespace, labels), g.rules.Selected(c, n.Namespace, labels))
	ingress := g.ingress.Of(c, scope.Sidecar, n)
	place, named := g.places.Of(c, n, labels)
	patches := g.patches.Of(c, n, labels)
	targets := ""
	if n.Metadata.Interception != node.None || ingress.Named() {
		targets = workload.EncodeTargets(g.targets.Of(c, n))
	}
	return placed{
		Clusters:  clusterView{Set: clusters.Set{Scope: scope, Client: g.clientOf(c, n, named), Patches: patches.Clusters}, Targets: targets, Ingress: ingress},
		Endpoints: endpointView{Scope: scope, Place: place, Network: g.networks.Of(c, n)},
		Listeners: listenerView{
			Set: listeners.Set{
				Scope: scope, Proxy: g.listenerProxy(c, n, scope, labels), Self: g.listeners.Outbound.Self(c, n),
				Selections: g.selectors.Connections(c, labels), Patches: patches.Listeners,
			},
			Targets:  targets,
			Ingress:  ingress,
			Outside:  g.scopes.Outside(c, scope),
			Policies: g.policies.Of(c, n, labels),
		},
		Routes: routeView{
			Scope: scope, Namespace: n.Namespace, Domain: n.Domain, Dialing: g.workloads.Dialing(n), Selections: g.selectors.Requests(c, labels), Patches: patches.Routes,
			Headers: routes.HeadersOf(g.mesh.Proxy(c, n)),
		},
		Names: nameView{Scope: scope, Client: nametable.Client{Dialing: g.workloads.Dialing(n), Network: n.Metadata.Network}},

		Extensions: extensionView(g.extensions.View(c, n, labels, patches.Extensions)),
	}
}

func (g *graph) placeRouter(c *incr.Ctx, n *node.Node) placed {
	labels := g.workloads.Labels(c, n)
	scope := g.scopes.OfRouter(c, n.Namespace, g.rules.Selected(c, n.Namespace, labels))
	servers := g.gateways.Of(c, n, labels)
	patches := g.patches.Of(c, n, labels)
	view := routeView{
		Scope: scope, Namespace: n.Namespace, Selections: g.selectors.Requests(c, labels), Gateways: servers.Gateways, Ports: servers.Ports, Patches: patches.Routes,
		Headers: routes.HeadersOf(g.mesh.Proxy(c, n)),
	}
	if view.Gateways == "" {
		view.Gateways = noGateway
	}
	place, named := g.places.Of(c, n, labels)
	return placed{
		Clusters:  clusterView{Set: clusters.Set{Scope: scope, Client: g.clientOf(c, n, named), Patches: patches.Clusters}, ByName: g.gateways.Automatic(c, servers)},
		Endpoints: endpointView{Scope: scope, Router: true, Place: place, Network: g.networks.Of(c, n)},
		Listeners: listenerView{
			Set: listeners.Set{Scope: scope, Proxy: g.listenerProxy(c, n, scope, labels), Patches: patches.Listeners}, Router: true, Servers: servers,
			Unprivileged: n.Metadata.Unprivileged && g.gateways.AsksPrivileges(c, servers),
		},
		Routes: view,
		Names:  nameView{Scope: scope, Router: true},

		Extensions: extensionView(g.extensions.View(c, n, labels, patches.Extensions)),
	}
}

// noGateway keeps the routes of a gateway that nothing selects apart from those of sidecars; no key is like it.
const noGateway = "-"

func (g *graph) clientOf(c *incr.Ctx, n *node.Node, place workload.Place) clusters.Client {
	out := clusters.Client{
		SameCase:         g.mesh.Proxy(c, n).GetProxyHeaders().GetPreserveHttp1HeaderCase().GetValue(),
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		Certificates:     n.Metadata.Client,
		Router:           n.Type == node.Router,
		Families:         g.workloads.Dialing(n).Families,
		Place:            place,
		Zones:            g.places.Asked(c).Zones && n.Metadata.SelfDiscovery,
	}
	if g.places.Asked(c).Named {
		out.Network = g.networks.Of(c, n)
	}
	return out
}

func (g *graph) listenerProxy(c *incr.Ctx, n *node.Node, scope scope.Scope, labels map[string]string) listener.Proxy {
	out := listener.Proxy{
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		ALPN:             n.Supports("istio.alpn"),
		Certificates:     n.Metadata.Server,
		Dialed:           n.Type == node.Sidecar && n.Metadata.Interception == node.None,
		Transparent:      n.Type == node.Sidecar && n.Metadata.Interception == node.TProxy,
		Dialing:          g.workloads.Dialing(n),
		Ports:            g.portsFor(c, n),
		Paths:            g.mesh.Listeners(c).Paths,
		Router:           n.Type == node.Router,
		Sessions:         g.persistentSessions,
		Stats:            n.Supports("istio.stats"),
		Telemetry:        g.reports.Of(c, n.Namespace, labels),
		Extensions:       g.extensions.Of(c, n, labels),
		Settings:         g.mesh.ForListeners(c, n),
	}
	out.Tracing = g.reports.Tracing(c, n, func(name string) bool { return g.hasCluster(c, scope, name) }, labels, out.Telemetry)
	if n.Type == node.Router {
		out.Policies = g.policies.Of(c, n, labels)
	}
	return out
}

// portsFor are the ports that a proxy has for itself.
func (g *graph) portsFor(c *incr.Ctx, n *node.Node) listener.Ports {
	if n.Type == node.Router {
		return listener.Ports{}
	}
	out := g.mesh.Listeners(c).Ports
	out.Status, out.Metrics, out.Unprivileged = n.Metadata.StatusPort, n.Metadata.PrometheusPort, n.Metadata.Unprivileged
	if p := n.Metadata.HTTPProxyPort; p != nil {
		out.Proxy = *p
	}
	return out
}

// hasCluster reports whether proxies of a scope have an outbound cluster.
func (g *graph) hasCluster(c *incr.Ctx, scope scope.Scope, name string) bool {
	n, ok := cluster.ParseName(name)
	if !ok {
		return false
	}
	return slices.ContainsFunc(g.providers.ServicesOf(c, n.Host), func(s *config.Service) bool {
		return g.mesh.Sees(c, s, scope.Namespace) && s.Port(n.Port) != nil && g.scopes.Reaches(c, scope, s)
	})
}
