// Package contest says of resources that compete for what only one can have which of them is not
// served: the younger one, or both where it is not known which was there first. What it says stands
// as a failed function of the graph, with their rows, for as long as somebody asks.
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
		told := []string{k.A, k.B}
		if k.Decided {
			told = told[1:]
		}
		for _, key := range told {
			switch k.Table { // so that it is said with these rows
			case config.Gateways:
				t.Gateways.Get(c, key)
			case config.VirtualServices:
				t.VirtualServices.Get(c, key)
			}
		}
		switch {
		case k.Decided && k.A == k.B:
			return struct{}{}, fmt.Errorf("two of its servers want %s: the second one is left out", k.Thing)
		case k.Decided:
			return struct{}{}, fmt.Errorf("it is left out: %s has %s, and was there first", k.A, k.Thing)
		}
		return struct{}{}, fmt.Errorf("both want %s, and it is not known which was there first: neither gets it; "+
			"rank their namespaces where their source is declared (rank), or give the one that is to yield another name", k.Thing)
	})}
}

// Say says of contests who loses.
func (s *Contests) Say(c *incr.Ctx, all []config.Contest) {
	for _, k := range all {
		s.refused.Get(c, k)
	}
}
