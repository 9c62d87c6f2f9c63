package tables

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Aged is a resource of Istio, which knows its age.
type Aged interface{ Age() config.Meta }

// InAge lists the resources of rows, the oldest first.
func InAge[V Aged](list []incr.Item[string, Row[V]]) []V {
	var out []V
	for _, i := range list {
		out = append(out, i.Value.Value)
	}
	slices.SortStableFunc(out, func(a, b V) int { return a.Age().Before(b.Age()) })
	return out
}
