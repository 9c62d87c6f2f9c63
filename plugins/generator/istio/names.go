package istio

import (
	"reflect"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametable"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// nameTables: the names of each service that a view sees make its table.
type nameTables struct {
	// views that are wanted.
	views *incr.Input[nameView, struct{}]
	table *incr.Func[nameView, []sdk.Resource]
}

// nameView is what a name table depends on of the proxies that get it.
type nameView struct {
	Scope  scope.Scope
	Client nametable.Client
	// Router: nobody asks a gateway for names, so that its table is empty.
	Router bool
}

// nameTableName is what the table is called where resources need a name; in responses it has none.
const nameTableName = "names"

func (g *graph) addNames() {
	g.nameTables.views = incr.NewInput[nameView](g.Graph, "name tables", incr.Same[struct{}])
	entries := incr.Join(g.nameTables.views, g.scopes.Visible, "names of hosts",
		func(v nameView, _ struct{}) []scope.Scope {
			if v.Router {
				return nil
			}
			return []scope.Scope{v.Scope}
		},
		func(h scope.Host, _ *config.Service) []scope.Scope { return []scope.Scope{h.Scope} },
		func(a, b []nametable.Entry) bool { return reflect.DeepEqual(a, b) },
		func(c *incr.Ctx, k incr.Pair[nameView, scope.Host], _ struct{}, s *config.Service) ([]nametable.Entry, error) {
			if len(g.scopes.ImportsOf(c, k.Right, s)) == 0 {
				return nil, incr.Absent // only routes lead there
			}
			out := nametable.Of(s, k.Left.Client, func() []*endpoint.Endpoint { return g.workloads.Endpoints(c, s.Key) })
			if len(out) == 0 {
				return nil, incr.Absent
			}
			return out, nil
		})
	inTable := incr.NewIndex(entries, "names of table", func(k incr.Pair[nameView, scope.Host], _ []nametable.Entry) []nameView {
		return []nameView{k.Left}
	})
	g.nameTables.table = incr.NewFunc(g.Graph, "name table", patches.SameResources, func(c *incr.Ctx, v nameView) ([]sdk.Resource, error) {
		var all []nametable.Entry
		for _, i := range inTable.Of(c, v) {
			all = append(all, i.Value...)
		}
		return []sdk.Resource{{Name: nameTableName, Body: nametable.Encode(all)}}, nil
	})
}

func (g *graph) nameClient(n *node.Node) nametable.Client {
	return nametable.Client{Dialing: g.workloads.Dialing(n), Network: n.Metadata.Network}
}
