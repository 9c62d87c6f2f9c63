// Package nametables makes the tables by which proxies answer their workloads' questions for names.
// What a table looks like is in nametable.
package nametables

import (
	"bytes"
	"reflect"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/internal/nametable"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// View is what a name table depends on of the proxies that get it.
type View struct {
	Scope  scope.Scope
	Client nametable.Client
	// Router: nobody asks a gateway for names, so that its table is empty.
	Router bool
}

// Tables are the name tables of all views: the names of each service that a view sees make its
// table.
type Tables struct {
	// Views are those that are wanted.
	Views *incr.Input[View, struct{}]
	// Of is the table of a view.
	Of *incr.Func[View, []sdk.Resource]
}

// ResourceName is what the table is called where resources need a name; in responses it has none.
const ResourceName = "names"

// New adds name tables to a graph.
func New(graph *incr.Graph, scopes *scope.Scopes, workloads *workload.Workloads) *Tables {
	x := &Tables{}
	x.Views = incr.NewInput[View](graph, "name tables", incr.Same[struct{}])
	entries := incr.Join(x.Views, scopes.Visible, "names of hosts",
		func(v View, _ struct{}) []scope.Scope {
			if v.Router {
				return nil
			}
			return []scope.Scope{v.Scope}
		},
		func(h scope.Host, _ *config.Service) []scope.Scope { return []scope.Scope{h.Scope} },
		func(a, b []nametable.Entry) bool { return reflect.DeepEqual(a, b) },
		func(c *incr.Ctx, k incr.Pair[View, scope.Host], _ struct{}, s *config.Service) ([]nametable.Entry, error) {
			if len(scopes.Sidecars.ImportsOf(c, k.Right, s)) == 0 {
				return nil, incr.Absent // only routes lead there
			}
			out := nametable.Of(&s.Service, k.Left.Client, func() []nametable.Endpoint { return named(workloads.Endpoints(c, s.Key)) })
			if len(out) == 0 {
				return nil, incr.Absent
			}
			return out, nil
		})
	inTable := incr.NewIndex(entries, "names of table", func(k incr.Pair[View, scope.Host], _ []nametable.Entry) []View {
		return []View{k.Left}
	})
	x.Of = incr.NewFunc(graph, "name table", sameTable, func(c *incr.Ctx, v View) ([]sdk.Resource, error) {
		var all []nametable.Entry
		for _, i := range inTable.Of(c, v) {
			all = append(all, i.Value...)
		}
		return []sdk.Resource{{Name: ResourceName, Body: nametable.Encode(all)}}, nil
	})
	return x
}

func named(endpoints []*endpoint.Endpoint) []nametable.Endpoint {
	out := make([]nametable.Endpoint, len(endpoints))
	for i, e := range endpoints {
		out[i] = nametable.Endpoint{Endpoint: &e.Endpoint, Key: e.Key}
	}
	return out
}

func sameTable(a, b []sdk.Resource) bool { return bytes.Equal(a[0].Body, b[0].Body) }
