package serving

import (
	"errors"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// explainLimit bounds how many rows an explanation names.
const explainLimit = 1000

var _ sdk.Explainer = (*Engine)(nil)

var errNotMade = errors.New("no such resource in this view, or nobody wants it now")

// Explain implements sdk.Explainer from what the graph has recorded.
func (e *Engine) Explain(_ string, view uint64, name string) (rows, missing []state.Name, err error) {
	v := e.views.byID[view]
	if v == nil {
		return nil, nil, fmt.Errorf("view %d is not known", view)
	}
	why, ok := v.explain(name)
	if !ok {
		return nil, nil, errNotMade
	}
	rows = e.names(why.Rows)
	if c, ok := v.content.(*endpointContent); ok && c.wants[name] != nil {
		rows = append(rows, e.assignments.Rows(c.wants[name].made)...)
	}
	if _, ok := v.content.(*namedContent[extensions.Discovery]); ok {
		rows = slices.DeleteFunc(rows, func(r state.Name) bool { return r.Table == config.EnvoyFilters && !e.addsExtension(r.Key, name) })
	}
	for _, r := range why.Missing {
		missing = append(missing, e.missed(r))
	}
	return rows, missing, nil
}

// addsExtension reports whether an EnvoyFilter brings a filter's configuration along.
func (e *Engine) addsExtension(key, name string) bool {
	f, ok := peek(e.from.Tables.EnvoyFilters, key)
	return ok && slices.ContainsFunc(f.Value.Spec.ConfigPatches, func(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool {
		return p.ApplyTo == networking.EnvoyFilter_EXTENSION_CONFIG && p.GetPatch().GetValue().GetFields()["name"].GetStringValue() == name
	})
}

// missed names something that was looked for in vain: a row by its key, or rows by what they would
// have been found by.
func (e *Engine) missed(r incr.Row) state.Name {
	if key, ok := r.Key.(string); ok && e.from.Tables.Load[r.Table] != nil {
		return state.Name{Table: r.Table, Key: key}
	}
	switch k := r.Key.(type) {
	case rule.Key:
		return state.Name{Table: config.DestinationRules, Key: k.Namespace + "/* for host " + k.Host}
	case scope.Host:
		return state.Name{Table: state.Services, Key: "*/" + k.Host + " visible in namespace " + k.Scope.Namespace}
	}
	return state.Name{Table: r.Table, Key: fmt.Sprint(r.Key)}
}

func (p *partView) explain(name string) (incr.Explanation, bool) {
	for _, part := range p.parts {
		if _, ok := part.bodies[name]; ok {
			return part.root.explain(name)
		}
	}
	return incr.Explanation{}, false
}

func (c *endpointContent) explain(name string) (incr.Explanation, bool) {
	return incr.Explain(c.e.from.Clusters.Specs, clusters.SpecKey{View: clusters.EndpointView(c.key), Cluster: name}, explainLimit)
}
