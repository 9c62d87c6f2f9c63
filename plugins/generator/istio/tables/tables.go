// Package tables is the rows that the generator reads, as inputs of the graph that computes
// resources: a row that comes or goes is staged here, and everything else asks here. A row that
// cannot be read keeps its last good value.
package tables

import (
	"bytes"
	"maps"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets/usable"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Row is a row of a table, and what was read from it.
type Row[V any] struct {
	Payload []byte
	created int64
	undated bool
	Value   V
}

func sameRow[V any](a, b Row[V]) bool {
	return a.created == b.created && a.undated == b.undated && bytes.Equal(a.Payload, b.Payload)
}

// Tables are the rows that the generator reads. Each is an input of the graph, and is staged by
// load.
type Tables struct {
	graph           *incr.Graph
	Services        *incr.Input[string, Row[*config.Service]]
	ClusterServices *incr.Input[string, Row[*config.Service]]
	Endpoints       *incr.Input[string, Row[*endpoint.Endpoint]]
	Workloads       *incr.Input[string, Row[Unread]]
	// Namespaces are their labels.
	Namespaces             *incr.Input[string, Row[map[string]string]]
	VirtualServices        *incr.Input[string, Row[*config.VirtualService]]
	DestinationRules       *incr.Input[string, Row[*config.DestinationRule]]
	Gateways               *incr.Input[string, Row[*config.Gateway]]
	Sidecars               *incr.Input[string, Row[*config.Sidecar]]
	PeerAuthentications    *incr.Input[string, Row[*config.PeerAuthentication]]
	RequestAuthentications *incr.Input[string, Row[*config.RequestAuthentication]]
	AuthorizationPolicies  *incr.Input[string, Row[*config.AuthorizationPolicy]]
	Telemetries            *incr.Input[string, Row[*config.Telemetry]]
	EnvoyFilters           *incr.Input[string, Row[*config.EnvoyFilter]]
	TrafficExtensions      *incr.Input[string, Row[*config.Extension]]
	WasmPlugins            *incr.Input[string, Row[*config.Extension]]
	// Modules are those that are there for proxies which can't fetch them.
	Modules *incr.Input[string, Row[modules.Row]]
	// KeySets are those that are not inline, by authn.KeySet; "" where Envoy would not take one.
	KeySets  *incr.Input[string, Row[string]]
	Mesh     *incr.Input[string, Row[*meshv1.MeshConfig]]
	Networks *incr.Input[string, Row[*meshv1.MeshNetworks]]
	// NetworkGateways are gateways of networks that are no services.
	NetworkGateways *incr.Input[string, Row[endpoint.Gateway]]
	// Load stages a row of a table, by the table's name.
	Load map[string]Loader
	// Reader of endpoints, for who has them outside of the graph, too.
	Reader *endpoint.Reader
}

// Loader sets a row of a table, or takes it away if it is nil.
type Loader func(key string, r *pb.Row) error

// New adds the tables to a graph; domain is the mesh's DNS domain, by which short names are
// completed.
func New(graph *incr.Graph, domain string) *Tables {
	t := &Tables{graph: graph, Load: map[string]Loader{}}
	t.addServices()
	t.Reader = endpoint.NewReader()
	t.Endpoints = table(t, state.Endpoints, t.Reader.Parse)
	t.Workloads = table(t, state.Workloads, readWorkload)
	t.Namespaces = tableOf(t, state.Namespaces, labelsOfNamespace, func(a, b Row[map[string]string]) bool { return maps.Equal(a.Value, b.Value) })
	t.VirtualServices = table(t, config.VirtualServices, func(r *pb.Row) (*config.VirtualService, error) {
		return config.ParseVirtualService(r, domain)
	})
	t.DestinationRules = table(t, config.DestinationRules, func(r *pb.Row) (*config.DestinationRule, error) {
		return config.ParseDestinationRule(r, domain)
	})
	t.Gateways = tableOf(t, config.Gateways, config.ParseGateway, func(a, b Row[*config.Gateway]) bool {
		return sameRow(a, b) && a.Value.Front.Same(b.Value.Front)
	})
	t.Sidecars = table(t, config.Sidecars, config.ParseSidecar)
	t.PeerAuthentications = table(t, config.PeerAuthentications, config.ParsePeerAuthentication)
	t.RequestAuthentications = table(t, config.RequestAuthentications, config.ParseRequestAuthentication)
	t.AuthorizationPolicies = tableOf(t, config.AuthorizationPolicies, config.ParseAuthorizationPolicy,
		func(a, b Row[*config.AuthorizationPolicy]) bool {
			return sameRow(a, b) && maps.Equal(a.Value.Annotations, b.Value.Annotations)
		})
	t.Telemetries = table(t, config.Telemetries, config.ParseTelemetry)
	t.EnvoyFilters = table(t, config.EnvoyFilters, config.ParseEnvoyFilter)
	t.TrafficExtensions = table(t, config.TrafficExtensions, config.ParseTrafficExtension)
	t.WasmPlugins = table(t, config.WasmPlugins, config.ParseWasmPlugin)
	t.Modules = table(t, modules.Table, config.ParseModule)
	t.KeySets = table(t, config.KeySets, readKeySet)
	t.Mesh = table(t, state.Mesh, parseMesh)
	t.Networks = table(t, state.Networks, parseNetworks)
	t.NetworkGateways = table(t, state.NetworkGateways, readGateway)
	return t
}

// Judge has rows asked about before they are read: one that is refused keeps its last good value.
func (t *Tables) Judge(judge func(table string, r *pb.Row) error) {
	for name, load := range t.Load {
		t.Load[name] = func(key string, r *pb.Row) error {
			if r != nil {
				if err := judge(name, r); err != nil {
					return err
				}
			}
			return load(key, r)
		}
	}
}

// readKeySet returns a key set; "" if Envoy would not take it, as if it weren't there.
func readKeySet(r *pb.Row) (string, error) {
	text := string(r.Payload)
	if usable.Check(text) != nil {
		return "", nil
	}
	return text, nil
}

// table adds a table. A row that can't be read keeps its last good value.
func table[V any](t *Tables, name string, parse func(*pb.Row) (V, error)) *incr.Input[string, Row[V]] {
	return tableOf(t, name, parse, sameRow[V])
}

// tableOf adds a table whose rows are the same if equal says so.
func tableOf[V any](t *Tables, name string, parse func(*pb.Row) (V, error), equal func(a, b Row[V]) bool) *incr.Input[string, Row[V]] {
	in := incr.NewInput[string](t.graph, name, equal)
	t.Load[name] = func(key string, r *pb.Row) error {
		if r == nil {
			in.Delete(key)
			return nil
		}
		v, err := parse(r)
		if err == nil {
			in.Set(key, Row[V]{Payload: r.Payload, created: r.Created, undated: r.Undated, Value: v})
		}
		return err
	}
	return in
}
