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
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/placement"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/reports"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/serving"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// newEngine makes the engine: each package is given what it needs, by name.
func newEngine(c Config) *serving.Engine { return engineOf(c, nil) }

// engineOf wires an engine; judge, which may be nil, refuses rows.
func engineOf(c Config, judge func(table string, row *pb.Row) error) *serving.Engine {
	graph := incr.New()
	rows := tables.New(graph, c.Domain)
	if judge != nil {
		rows.Judge(judge)
	}
	settings := mesh.New(graph, rows, c.Domain)
	workloads := workload.New(graph, rows, settings, c.DualStack)
	targets := workload.NewTargets(graph, rows, workloads)
	places := workload.NewPlaces(graph, rows, settings, workloads)
	networks := workload.NewNetworks(graph, rows, settings, workloads, c.EntryNetworks)
	ports := ingress.New(rows)
	selectors := selection.New(rows)
	scopes := scope.New(graph, rows, settings, c.Domain)
	rules := rule.New(graph, rows, settings)
	servers := gateways.New(graph, rows, targets, c.QUICListeners)
	destinations := destination.New(settings, rules, scopes)
	providers := provider.New(graph, rows, settings)
	policies := policy.New(graph, rows, settings, providers, authn.Fetch(c.JWKSFetch))
	filters := patches.New(graph, rows, settings)
	brought := extensions.New(graph, rows, settings, filters)
	telemetry := reports.New(graph, rows, settings, providers, brought)

	outbound := clusters.New(graph, clusters.From{
		Tables: rows, Mesh: settings, Rules: rules, Scopes: scopes, Policies: policies, Patches: filters, Workloads: workloads, Targets: targets,
		Networks: networks, Ingress: ports, DualStack: c.DualStack,
	})
	proxies := listeners.NewProxies(listeners.ProxiesFrom{
		Mesh: settings, Workloads: workloads, Scopes: scopes, Providers: providers, Policies: policies, Reports: telemetry, Extensions: brought,
		PersistentSessions: c.PersistentSessions,
	})
	listening := listeners.New(graph, listeners.From{
		Tables: rows, Mesh: settings, Rules: rules, Scopes: scopes, Destinations: destinations, Gateways: servers, Workloads: workloads,
		Targets: targets, Ingress: ports, Policies: policies, Reports: telemetry, Patches: filters, DualStack: c.DualStack,
		IngressTLS: c.TLSOnSidecarIngress, QUIC: c.QUICListeners,
	})
	routing := routes.New(graph, routes.From{
		Tables: rows, Mesh: settings, Scopes: scopes, Destinations: destinations, Gateways: servers, Patches: filters, QUIC: c.QUICListeners,
		PersistentSessions: c.PersistentSessions,
	})
	placed := placement.New(graph, placement.From{
		Mesh: settings, Workloads: workloads, Targets: targets, Places: places, Networks: networks, Ingress: ports, Selectors: selectors,
		Scopes: scopes, Rules: rules, Policies: policies, Patches: filters, Extensions: brought, Gateways: servers, Proxies: proxies,
		Outbound: listening.Outbound,
	})
	return serving.New(serving.From{
		Graph: graph, Tables: rows, Scopes: scopes, Placement: placed, Clusters: outbound, Listeners: listening, Routes: routing,
		NameTables: nametables.New(graph, scopes, workloads), Extensions: brought, Patches: filters, Additions: patches.NewAdditions(graph, filters),
		ClusterAliases: c.ClusterAliases,
	})
}
