package istio

import (
	"bytes"
	"maps"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// graph is everything that is computed, and from what. Its files: tables.go (rows), mesh.go, scope.go (who sees what), rules.go
// (which rule counts), clusters.go, specs.go (endpoints), outbound.go and inbound.go (listeners of sidecars), gateways.go, routes.go, and
// placement.go (which views a proxy is in).
type graph struct {
	*incr.Graph
	domain string
	// dualStack: proxies with addresses of both families use both.
	dualStack bool
	// ingressTLS: ports that Sidecars name may open TLS of their own.
	ingressTLS bool
	// quic: gateways offer HTTP/3.
	quic bool
	// persistentSessions stay with an endpoint.
	persistentSessions bool
	// fetch says who fetches key sets.
	fetch authn.Fetch
	// entryNetworks: declared endpoints are looked for in the mesh's networks.
	entryNetworks bool

	tables
	mesh
	scopes
	rules
	policies
	reports
	balancing
	networks
	identities *incr.Func[string, []string]
	targets    *incr.Func[targetsKey, []target]
	// servicesByLabel are a cluster's services that select workloads, by one of the labels that they ask for.
	servicesByLabel *incr.Index[string, string, row[*config.Service]]
	// servicesThere are the same as other clusters have them.
	servicesThere *incr.Index[string, string, row[*config.Service]]
	clusters
	specs    *incr.Func[specKey, endpoint.Spec]
	outbound outboundListeners
	inbound  *incr.Func[inboundKey, []byte]
	// ownListener is that of a port that clients dial themselves.
	ownListener *incr.Func[ownKey, []byte]
	gateways
	routes
	lists
	nameTables
	patches
	userExtensions
	placement *incr.Func[uint64, placed]
}

func newGraph(c Config, options ...incr.Option) *graph {
	g := &graph{Graph: incr.New(options...), domain: c.Domain, dualStack: c.DualStack, quic: c.QUICListeners, ingressTLS: c.TLSOnSidecarIngress, fetch: authn.Fetch(c.JWKSFetch), entryNetworks: c.EntryNetworks, persistentSessions: c.PersistentSessions}
	g.addTables()
	g.addMesh()
	g.addScopes()
	g.addRules()
	g.addBalancing()
	g.addNetworks()
	g.addPolicies()
	g.addReports()
	g.addPatches()
	g.addExtensions()
	g.addTargets()
	g.addClusters()
	g.addSpecs()
	g.connectionSelectors = g.addSelectors("source selectors of connections", connectionSelectors)
	g.addOutbound()
	g.addInbound()
	g.addOwnListeners()
	g.addGateways()
	g.addRoutes()
	g.addLists()
	g.addNames()
	g.addPlacement()
	return g
}

// row is a row of a table, read.
type row[V any] struct {
	payload []byte
	created int64
	value   V
}

func sameRow[V any](a, b row[V]) bool {
	return a.created == b.created && bytes.Equal(a.payload, b.payload)
}

// tables are the rows that the generator reads, the proxies, and what views want of them.
type tables struct {
	services        *incr.Input[string, row[*config.Service]]
	clusterServices *incr.Input[string, row[*config.Service]]
	endpoints       *incr.Input[string, row[*endpoint.Endpoint]]
	workloads       *incr.Input[string, row[unread]]
	// namespaces are their labels.
	namespaces             *incr.Input[string, row[map[string]string]]
	virtualServices        *incr.Input[string, row[*config.VirtualService]]
	destinationRules       *incr.Input[string, row[*config.DestinationRule]]
	gatewayRows            *incr.Input[string, row[*config.Gateway]]
	sidecars               *incr.Input[string, row[*config.Sidecar]]
	peerAuthentications    *incr.Input[string, row[*config.PeerAuthentication]]
	requestAuthentications *incr.Input[string, row[*config.RequestAuthentication]]
	authorizationPolicies  *incr.Input[string, row[*config.AuthorizationPolicy]]
	telemetries            *incr.Input[string, row[*config.Telemetry]]
	envoyFilters           *incr.Input[string, row[*config.EnvoyFilter]]
	trafficExtensions      *incr.Input[string, row[*config.Extension]]
	wasmPlugins            *incr.Input[string, row[*config.Extension]]
	// keySets are those that are not inline, by authn.KeySet.
	keySets *incr.Input[string, row[string]]
	meshRow *incr.Input[string, row[*meshConfig]]
	proxies *incr.Input[uint64, *node.Node]
	load    map[string]loader
	// reader of endpoints, for who has them outside of the graph, too.
	reader *endpoint.Reader
}

// loader sets a row of a table, or takes it away if it is nil.
type loader func(key string, r *pb.Row) error

func (g *graph) addTables() {
	g.load = map[string]loader{}
	g.addServices()
	g.reader = endpoint.NewReader()
	g.endpoints = table(g, state.Endpoints, g.reader.Parse)
	g.workloads = table(g, state.Workloads, readWorkload)
	g.namespaces = tableOf(g, state.Namespaces, labelsOfNamespace, func(a, b row[map[string]string]) bool { return maps.Equal(a.value, b.value) })
	g.virtualServices = table(g, config.VirtualServices, func(r *pb.Row) (*config.VirtualService, error) {
		return config.ParseVirtualService(r, g.domain)
	})
	g.destinationRules = table(g, config.DestinationRules, func(r *pb.Row) (*config.DestinationRule, error) {
		return config.ParseDestinationRule(r, g.domain)
	})
	g.gatewayRows = table(g, config.Gateways, config.ParseGateway)
	g.sidecars = table(g, config.Sidecars, config.ParseSidecar)
	g.peerAuthentications = table(g, config.PeerAuthentications, config.ParsePeerAuthentication)
	g.requestAuthentications = table(g, config.RequestAuthentications, config.ParseRequestAuthentication)
	g.authorizationPolicies = tableOf(g, config.AuthorizationPolicies, config.ParseAuthorizationPolicy,
		func(a, b row[*config.AuthorizationPolicy]) bool {
			return sameRow(a, b) && maps.Equal(a.value.Annotations, b.value.Annotations)
		})
	g.telemetries = table(g, config.Telemetries, config.ParseTelemetry)
	g.envoyFilters = table(g, config.EnvoyFilters, config.ParseEnvoyFilter)
	g.trafficExtensions = table(g, config.TrafficExtensions, config.ParseTrafficExtension)
	g.wasmPlugins = table(g, config.WasmPlugins, config.ParseWasmPlugin)
	g.keySets = table(g, config.KeySets, func(r *pb.Row) (string, error) { return string(r.Payload), nil })
	g.meshRow = table(g, state.Mesh, parseMesh)
	g.proxies = incr.NewInput[uint64, *node.Node](g.Graph, "proxies", nil)
}

// table adds a table. A row that can't be read keeps its last good value.
func table[V any](g *graph, name string, parse func(*pb.Row) (V, error)) *incr.Input[string, row[V]] {
	return tableOf(g, name, parse, sameRow[V])
}

// tableOf adds a table whose rows are the same if equal says so.
func tableOf[V any](g *graph, name string, parse func(*pb.Row) (V, error), equal func(a, b row[V]) bool) *incr.Input[string, row[V]] {
	in := incr.NewInput[string](g.Graph, name, equal)
	g.load[name] = func(key string, r *pb.Row) error {
		if r == nil {
			in.Delete(key)
			return nil
		}
		v, err := parse(r)
		if err == nil {
			in.Set(key, row[V]{payload: r.Payload, created: r.Created, value: v})
		}
		return err
	}
	return in
}

// policyOf is the rule's policy towards a cluster; nil without a rule.
func policyOf(rule *config.DestinationRule) *networking.DestinationRule {
	if rule == nil {
		return nil
	}
	return rule.Spec
}
