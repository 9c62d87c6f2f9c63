package istio

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Matches of virtual services may ask for labels of the proxy. What counts for a view is which of those asked for it has, not
// the labels: proxies with the same answers share routes.

// addSelectors adds the selectors that matches ask for.
func (g *graph) addSelectors(name string, of func(*networking.VirtualService) []map[string]string) incr.Collection[string, struct{}] {
	return incr.FlatMap(g.tables.VirtualServices, name, incr.Same[struct{}],
		func(_ *incr.Ctx, _ string, r tables.Row[*config.VirtualService]) ([]incr.Item[string, struct{}], error) {
			var out []incr.Item[string, struct{}]
			for _, labels := range of(r.Value.Spec) {
				if len(labels) > 0 {
					out = append(out, incr.Item[string, struct{}]{Key: endpoint.Selector(labels)})
				}
			}
			slices.SortFunc(out, func(a, b incr.Item[string, struct{}]) int { return strings.Compare(a.Key, b.Key) })
			return slices.CompactFunc(out, func(a, b incr.Item[string, struct{}]) bool { return a.Key == b.Key }), nil
		})
}

func requestSelectors(v *networking.VirtualService) []map[string]string {
	var out []map[string]string
	for _, h := range v.Http {
		for _, m := range h.Match {
			out = append(out, m.SourceLabels)
		}
	}
	return out
}

func connectionSelectors(v *networking.VirtualService) []map[string]string {
	var out []map[string]string
	for _, t := range v.Tcp {
		for _, m := range t.Match {
			out = append(out, m.SourceLabels)
		}
	}
	for _, t := range v.Tls {
		for _, m := range t.Match {
			out = append(out, m.SourceLabels)
		}
	}
	return out
}

// selections are the selectors that a proxy with these labels answers, in order.
func selections(c *incr.Ctx, all incr.Collection[string, struct{}], labels map[string]string) string {
	var out []string
	for _, s := range all.All(c) {
		if istio.Selects(endpoint.ParseSelector(s.Key), labels) {
			out = append(out, s.Key)
		}
	}
	return strings.Join(out, endpoint.SelectorSeparator)
}

// answers reads selections: whether the proxy has labels, of which all are asked for in selectors.
func answers(selections string) func(labels map[string]string) bool {
	known := map[string]string{}
	for _, s := range strings.Split(selections, endpoint.SelectorSeparator) {
		maps.Copy(known, endpoint.ParseSelector(s))
	}
	return func(labels map[string]string) bool { return istio.Selects(labels, known) }
}
