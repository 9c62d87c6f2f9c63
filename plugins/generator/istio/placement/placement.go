// Package placement says which views a proxy is in: for each type of resources, what they depend on
// of it. Proxies for which that is equal share them.
package placement

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/internal/nametable"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Placed is the views that a proxy is in. They hold results of what generation asks about it, so
// that proxies with the same answers share them.
type Placed struct {
	Clusters  ClusterView
	Endpoints EndpointView
	Listeners ListenerView
	Routes    RouteView
	Names     NameView
	// Extensions are configurations of filters.
	Extensions ExtensionView
}

// ClusterView: the outbound clusters of a set, and those behind the workload's own ports.
type ClusterView struct {
	Set     clusters.Set
	Targets string
	Ingress ingress.Key
	// ByName: a gateway passes TLS on to the cluster that the server name says.
	ByName bool
}

// NameView: name tables.
type NameView nametables.View

// RouteView: route configurations.
type RouteView routes.View

// EndpointView: load assignments.
type EndpointView clusters.EndpointView

// ListenerView: the outbound listeners of a set and virtualInbound, or the listeners of gateways.
type ListenerView struct {
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

// ExtensionView: configurations of filters that proxies ask for by name.
type ExtensionView extensions.View

// From is what placement is made from.
type From struct {
	Mesh       *mesh.Settings
	Workloads  *workload.Workloads
	Targets    *workload.Targets
	Places     *workload.Places
	Networks   *workload.Networks
	Ingress    *ingress.Ingress
	Selectors  *selection.Selectors
	Scopes     *scope.Scopes
	Rules      *rule.Rules
	Policies   *policy.Policies
	Patches    *patches.Patches
	Extensions *extensions.Extensions
	Gateways   *gateways.Gateways
	// Proxies are as listeners see them; Outbound are the listeners by which sidecars send.
	Proxies  *listeners.Proxies
	Outbound *listeners.Outbound
}

// Placement is that of all proxies.
type Placement struct {
	from From
	// Proxies are those that are connected, by slot.
	Proxies *incr.Input[uint64, *node.Node]
	// At is where the proxy of a slot is placed.
	At *incr.Func[uint64, Placed]
}

// New adds placement to a graph.
func New(graph *incr.Graph, from From) *Placement {
	x := &Placement{from: from, Proxies: incr.NewInput[uint64, *node.Node](graph, "proxies", nil)}
	x.At = incr.NewFunc(graph, "placement", incr.Same[Placed], func(c *incr.Ctx, connection uint64) (Placed, error) {
		n, ok := x.Proxies.Get(c, connection)
		if !ok {
			return Placed{}, incr.Absent
		}
		if n.Type == node.Router {
			return x.placeRouter(c, n), nil
		}
		return x.placeSidecar(c, n), nil
	})
	return x
}

func (x *Placement) placeSidecar(c *incr.Ctx, n *node.Node) Placed {
	labels := x.from.Workloads.Labels(c, n)
	scope := x.from.Scopes.Of(c, n.Namespace, x.from.Scopes.Sidecars.For(c, n.Namespace, labels), x.from.Rules.Selected(c, n.Namespace, labels))
	ingress := x.from.Ingress.Of(c, scope.Sidecar, n)
	place, named := x.from.Places.Of(c, n, labels)
	patches := x.from.Patches.Of(c, n, labels)
	targets := ""
	if n.Metadata.Interception != node.None || ingress.Named() {
		targets = workload.EncodeTargets(x.from.Targets.Of(c, n))
	}
	return Placed{
		Clusters:  ClusterView{Set: clusters.Set{Scope: scope, Client: x.clientOf(c, n, named), Patches: patches.Clusters}, Targets: targets, Ingress: ingress},
		Endpoints: EndpointView{Scope: scope, Place: place, Network: x.from.Networks.Of(c, n)},
		Listeners: ListenerView{
			Set: listeners.Set{
				Scope: scope, Proxy: x.from.Proxies.Of(c, n, scope, labels), Self: x.from.Outbound.Self(c, n),
				Selections: x.from.Selectors.Connections(c, labels), Patches: patches.Listeners,
			},
			Targets:  targets,
			Ingress:  ingress,
			Outside:  x.from.Scopes.Outside(c, scope),
			Policies: x.from.Policies.Of(c, n, labels),
		},
		Routes: RouteView{
			Scope: scope, Namespace: n.Namespace, Domain: n.Domain, Dialing: x.from.Workloads.Dialing(n),
			Selections: x.from.Selectors.Requests(c, labels), Patches: patches.Routes,
			Headers: routes.HeadersOf(x.from.Mesh.Proxy(c, n)),
		},
		Names: NameView{Scope: scope, Client: nametable.Client{Dialing: x.from.Workloads.Dialing(n), Network: n.Metadata.Network}},

		Extensions: ExtensionView(x.from.Extensions.View(c, n, labels, patches.Extensions)),
	}
}

func (x *Placement) placeRouter(c *incr.Ctx, n *node.Node) Placed {
	labels := x.from.Workloads.Labels(c, n)
	scope := x.from.Scopes.OfRouter(c, n.Namespace, x.from.Rules.Selected(c, n.Namespace, labels))
	servers := x.from.Gateways.Of(c, n, labels)
	patches := x.from.Patches.Of(c, n, labels)
	view := RouteView{
		Scope: scope, Namespace: n.Namespace, Selections: x.from.Selectors.Requests(c, labels),
		Gateways: servers.Gateways, Ports: servers.Ports, Patches: patches.Routes,
		Headers: routes.HeadersOf(x.from.Mesh.Proxy(c, n)),
	}
	if view.Gateways == "" {
		view.Gateways = noGateway
	}
	place, named := x.from.Places.Of(c, n, labels)
	client := x.clientOf(c, n, named)
	client.Shown = x.from.Gateways.Shown(c, servers)
	return Placed{
		Clusters:  ClusterView{Set: clusters.Set{Scope: scope, Client: client, Patches: patches.Clusters}, ByName: x.from.Gateways.Automatic(c, servers)},
		Endpoints: EndpointView{Scope: scope, Router: true, Place: place, Network: x.from.Networks.Of(c, n)},
		Listeners: ListenerView{
			Set: listeners.Set{Scope: scope, Proxy: x.from.Proxies.Of(c, n, scope, labels), Patches: patches.Listeners}, Router: true, Servers: servers,
			Unprivileged: n.Metadata.Unprivileged && x.from.Gateways.AsksPrivileges(c, servers),
		},
		Routes: view,
		Names:  NameView{Scope: scope, Router: true},

		Extensions: ExtensionView(x.from.Extensions.View(c, n, labels, patches.Extensions)),
	}
}

// noGateway keeps the routes of a gateway that nothing selects apart from those of sidecars; no key
// is like it.
const noGateway = "-"

func (x *Placement) clientOf(c *incr.Ctx, n *node.Node, place workload.Place) clusters.Client {
	out := clusters.Client{
		SameCase:         x.from.Mesh.Proxy(c, n).GetProxyHeaders().GetPreserveHttp1HeaderCase().GetValue(),
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		Certificates:     n.Metadata.Client,
		Router:           n.Type == node.Router,
		Families:         x.from.Workloads.Dialing(n).Families,
		Place:            place,
		Zones:            x.from.Places.Asked(c).Zones && n.Metadata.SelfDiscovery,
	}
	if x.from.Mesh.Listeners(c).Dynamic {
		out.Resolver = n.Metadata.Resolver
	}
	if x.from.Places.Asked(c).Named {
		out.Network = x.from.Networks.Of(c, n)
	}
	return out
}
