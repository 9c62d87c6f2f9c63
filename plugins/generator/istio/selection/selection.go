// Package selection says which proxies matches of virtual services select by labels: what counts
// for a view is which of the selectors it answers, not the labels, so that proxies with the same
// answers share routes.
package selection

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

// Selectors are those that matches of all virtual services ask for.
type Selectors struct {
	// requests are those of routes for requests, connections those of routes for connections.
	requests, connections incr.Collection[string, struct{}]
}

// New adds the selectors to a graph.
func New(t *tables.Tables) *Selectors {
	return &Selectors{
		requests:    selectors(t, "source selectors", requestSelectors),
		connections: selectors(t, "source selectors of connections", connectionSelectors),
	}
}

// Requests are the selectors of routes for requests that a proxy with these labels answers, in
// order, joined.
func (s *Selectors) Requests(c *incr.Ctx, labels map[string]string) string {
	return answered(s.requests.All(c), labels)
}

// Connections are the same of routes for connections.
func (s *Selectors) Connections(c *incr.Ctx, labels map[string]string) string {
	return answered(s.connections.All(c), labels)
}

// selectors are those that matches of virtual services ask for.
func selectors(t *tables.Tables, name string, of func(*networking.VirtualService) []map[string]string) incr.Collection[string, struct{}] {
	return incr.FlatMap(t.VirtualServices, name, incr.Same[struct{}],
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

func answered(all []incr.Item[string, struct{}], labels map[string]string) string {
	var out []string
	for _, s := range all {
		if istio.Selects(endpoint.ParseSelector(s.Key), labels) {
			out = append(out, s.Key)
		}
	}
	return strings.Join(out, endpoint.SelectorSeparator)
}

// Answers reads selectors, joined: whether the proxy has labels, of which all are asked for in
// them.
func Answers(selections string) func(labels map[string]string) bool {
	known := map[string]string{}
	for _, s := range strings.Split(selections, endpoint.SelectorSeparator) {
		maps.Copy(known, endpoint.ParseSelector(s))
	}
	return func(labels map[string]string) bool { return istio.Selects(labels, known) }
}
