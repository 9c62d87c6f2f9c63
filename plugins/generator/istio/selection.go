package istio

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Matches of virtual services may ask for labels of the proxy. What counts for a view is which of those asked for it has, not
// the labels: proxies with the same answers share routes.

// selectorSeparator stands between selectors in a view's key; quoted selectors don't hold it.
const selectorSeparator = ";"

// sourceSelectors are all selectors that matches ask for.
func (g *graph) addSelectors() incr.Collection[string, struct{}] {
	return incr.FlatMap(g.virtualServices, "source selectors", incr.Same[struct{}],
		func(_ *incr.Ctx, _ string, r row[*config.VirtualService]) ([]incr.Item[string, struct{}], error) {
			var out []incr.Item[string, struct{}]
			for _, h := range r.value.Spec.Http {
				for _, m := range h.Match {
					if len(m.SourceLabels) > 0 {
						out = append(out, incr.Item[string, struct{}]{Key: endpoint.Selector(m.SourceLabels)})
					}
				}
			}
			slices.SortFunc(out, func(a, b incr.Item[string, struct{}]) int { return strings.Compare(a.Key, b.Key) })
			return slices.CompactFunc(out, func(a, b incr.Item[string, struct{}]) bool { return a.Key == b.Key }), nil
		})
}

// selections are the selectors that a proxy with these labels answers, in order.
func (g *graph) selections(c *incr.Ctx, labels map[string]string) string {
	var out []string
	for _, s := range g.selectors.All(c) {
		if config.Selects(endpoint.ParseSelector(s.Key), labels) {
			out = append(out, s.Key)
		}
	}
	return strings.Join(out, selectorSeparator)
}

// answers reads selections.
func answers(selections string) func(labels map[string]string) bool {
	list := strings.Split(selections, selectorSeparator)
	return func(labels map[string]string) bool {
		return len(labels) == 0 || slices.Contains(list, endpoint.Selector(labels))
	}
}
