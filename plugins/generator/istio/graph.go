package istio

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/destination"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/reports"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// graph is everything that is computed, and from what: packages below by name, and placement.go
// (which views a proxy is in).
type graph struct {
	*incr.Graph
	// persistentSessions stay with an endpoint.
	persistentSessions bool

	tables *tables.Tables
	// proxies are those that are connected, by seat.
	proxies      *incr.Input[uint64, *node.Node]
	mesh         *mesh.Settings
	scopes       *scope.Scopes
	rules        *rule.Rules
	destinations *destination.Destinations
	providers    *provider.Providers
	policies     *policy.Policies
	reports      *reports.Reports
	workloads    *workload.Workloads
	targets      *workload.Targets
	places       *workload.Places
	networks     *workload.Networks
	ingress      *ingress.Ingress
	selectors    *selection.Selectors
	clusters     *clusters.Clusters
	listeners    *listeners.Listeners
	gateways     *gateways.Gateways
	routes       *routes.Routes
	nameTables   *nametables.Tables
	additions    *patches.Additions
	patches      *patches.Patches
	extensions   *extensions.Extensions
	placement    *incr.Func[uint64, placed]
}

func newGraph(c Config, options ...incr.Option) *graph {
	in := incr.New(options...)
	g := &graph{Graph: in, tables: tables.New(in, c.Domain), proxies: incr.NewInput[uint64, *node.Node](in, "proxies", nil), persistentSessions: c.PersistentSessions}
	g.mesh = mesh.New(in, g.tables, c.Domain)
	g.workloads = workload.New(in, g.tables, g.mesh, c.DualStack)
	g.targets = workload.NewTargets(in, g.tables, g.workloads)
	g.places = workload.NewPlaces(in, g.tables, g.mesh, g.workloads)
	g.networks = workload.NewNetworks(in, g.tables, g.mesh, g.workloads, c.EntryNetworks)
	g.ingress = ingress.New(g.tables)
	g.selectors = selection.New(g.tables)
	g.scopes = scope.New(in, g.tables, g.mesh, c.Domain)
	g.rules = rule.New(in, g.tables, g.mesh)
	g.gateways = gateways.New(g.Graph, g.tables, g.targets, g.scopes, c.QUICListeners)
	g.destinations = destination.New(g.mesh, g.rules, g.scopes)
	g.providers = provider.New(in, g.tables, g.mesh)
	g.policies = policy.New(in, g.tables, g.mesh, g.providers, authn.Fetch(c.JWKSFetch))
	g.patches = patches.New(in, g.tables, g.mesh)
	g.extensions = extensions.New(in, g.tables, g.mesh, g.patches)
	g.reports = reports.New(in, g.tables, g.mesh, g.providers, g.extensions)
	g.clusters = clusters.New(in, clusters.From{
		Tables: g.tables, Mesh: g.mesh, Rules: g.rules, Scopes: g.scopes, Policies: g.policies, Patches: g.patches, Workloads: g.workloads,
		Targets: g.targets, Networks: g.networks, Ingress: g.ingress, DualStack: c.DualStack,
	})
	g.listeners = listeners.New(in, listeners.From{
		Tables: g.tables, Mesh: g.mesh, Rules: g.rules, Scopes: g.scopes, Destinations: g.destinations, Gateways: g.gateways, Workloads: g.workloads,
		Targets: g.targets, Ingress: g.ingress, Policies: g.policies, Reports: g.reports, Patches: g.patches, DualStack: c.DualStack,
		IngressTLS: c.TLSOnSidecarIngress, QUIC: c.QUICListeners,
	})
	g.routes = routes.New(in, routes.From{
		Tables: g.tables, Mesh: g.mesh, Scopes: g.scopes, Destinations: g.destinations, Gateways: g.gateways, Patches: g.patches,
		QUIC: c.QUICListeners, PersistentSessions: c.PersistentSessions,
	})
	g.additions = patches.NewAdditions(in, g.patches)
	g.nameTables = nametables.New(in, g.scopes, g.workloads)
	g.addPlacement()
	return g
}
