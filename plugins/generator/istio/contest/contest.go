// Package contest says of resources that compete for what only one can have that none of them is
// served, where it is not known which was there first. What it says stands as a failed function of
// the graph, with both rows, for as long as somebody asks.
package contest

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Contests are those of a graph.
type Contests struct {
	refused *incr.Func[config.Contest, struct{}]
}

// New adds Contests to a graph, under a name.
func New(graph *incr.Graph, name string, t *tables.Tables) *Contests {
	return &Contests{incr.NewFunc(graph, name, nil, func(c *incr.Ctx, k config.Contest) (struct{}, error) {
		for _, key := range []string{k.A, k.B} {
			switch k.Table { // so that it is said with these rows
			case config.Gateways:
				t.Gateways.Get(c, key)
			case config.VirtualServices:
				t.VirtualServices.Get(c, key)
			}
		}
		return struct{}{}, fmt.Errorf("both want %s, and it is not known which was there first: neither gets it; "+
			"rank their namespaces where their source is declared (rank), or give the one that is to yield another name", k.Thing)
	})}
}

// Say says of contests that they are not decided.
func (s *Contests) Say(c *incr.Ctx, all []config.Contest) {
	for _, k := range all {
		s.refused.Get(c, k)
	}
}
