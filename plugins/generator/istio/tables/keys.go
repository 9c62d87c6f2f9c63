package tables

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

const separator = ","

// JoinKeys makes one text of keys, which names of resources never hold a comma in: what a set of
// rows is called in the key of a function.
func JoinKeys(keys []string) string { return strings.Join(keys, separator) }

// SplitKeys are the keys that JoinKeys joined.
func SplitKeys(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, separator)
}

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
