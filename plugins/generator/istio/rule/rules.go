// Package rule finds the DestinationRule that counts for a client's traffic to a service, and
// merges those that count together.
package rule

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Rules are the DestinationRules of the mesh.
type Rules struct {
	rows *incr.Input[string, tables.Row[*config.DestinationRule]]
	mesh *mesh.Settings

	byHost   *incr.Index[Key, string, tables.Row[*config.DestinationRule]]
	wildcard *incr.Index[string, string, tables.Row[*config.DestinationRule]]
	// selecting are the rules of a namespace that are for some of its workloads.
	selecting *incr.Index[string, string, tables.Row[*config.DestinationRule]]
	groups    *incr.Func[groupKey, []group]
	// merged is the rule that several make together, by their keys.
	merged *incr.Func[string, *config.DestinationRule]
	rule   *incr.Func[ask, *config.DestinationRule]
}

// Key is what rules are looked for by: those of a namespace for a host.
type Key struct{ Namespace, Host string }

// Client is whose traffic it is: proxies of a namespace that answer these selectors of its rules
// (see Rules.Selected).
type Client struct{ Namespace, Selected string }

// ask is for a client, and the namespace and host of a service.
type ask struct {
	Client        Client
	Service, Host string
}

// New adds the rules to a graph.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings) *Rules {
	r := &Rules{rows: t.DestinationRules, mesh: settings}
	r.byHost = incr.NewIndex(r.rows, "rules by host", func(_ string, r tables.Row[*config.DestinationRule]) []Key {
		return []Key{{r.Value.Namespace, r.Value.Host}}
	})
	r.wildcard = incr.NewIndex(r.rows, "wildcard rules", func(_ string, r tables.Row[*config.DestinationRule]) []string {
		if istio.IsWildcard(r.Value.Host) {
			return []string{r.Value.Namespace}
		}
		return nil
	})
	r.selecting = incr.NewIndex(r.rows, "rules for workloads", func(_ string, r tables.Row[*config.DestinationRule]) []string {
		if r.Value.Spec.GetWorkloadSelector() != nil {
			return []string{r.Value.Namespace}
		}
		return nil
	})
	r.addGroups(graph)
	r.rule = incr.NewFunc(graph, "rule", same, func(c *incr.Ctx, a ask) (*config.DestinationRule, error) {
		if one, ok := r.merged.Get(c, choice(r.candidates(c, a), a.Client.Selected)); ok {
			return one, nil
		}
		return nil, incr.Absent
	})
	return r
}

// candidates are the groups for the most specific host in the first place that has any: the
// client's namespace, the service's, the root namespace. What others there say less specifically is
// hidden, even if no candidate selects the client.
func (r *Rules) candidates(c *incr.Ctx, a ask) []group {
	root := r.mesh.Root(c)
	own := localRules
	if a.Client.Namespace == root {
		own = privateRules // what the root namespace exports comes last, for its own clients too
	}
	if list := r.mostSpecific(c, own, a.Client.Namespace, a.Host); len(list) > 0 {
		return list
	}
	for _, namespace := range []string{a.Service, root} {
		list := slices.DeleteFunc(slices.Clone(r.mostSpecific(c, exportedRules, namespace, a.Host)), func(one group) bool {
			return !one.visibleIn(a.Client.Namespace, namespace)
		})
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// mostSpecific are the groups for the most specific host of a pool that covers a host.
func (r *Rules) mostSpecific(c *incr.Ctx, p pool, namespace, host string) []group {
	if list := r.groups.Of(c, groupKey{p, namespace, host}); len(list) > 0 {
		return list
	}
	var hosts []string
	for _, i := range r.wildcard.Of(c, namespace) {
		if h := i.Value.Value.Host; h != host && istio.Covers(h, host) {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, istio.MoreSpecific)
	for _, h := range slices.Compact(hosts) {
		if list := r.groups.Of(c, groupKey{p, namespace, h}); len(list) > 0 {
			return list
		}
	}
	return nil
}

// choice is the first group that selects the client, otherwise the last that selects nobody in
// particular.
func choice(list []group, selected string) string {
	keys := ""
	for _, r := range list {
		switch {
		case !r.Selecting:
			keys = r.Keys
		case r.Selector == "" || slices.Contains(strings.Split(selected, endpoint.SelectorSeparator), r.Selector):
			return r.Keys
		}
	}
	return keys
}

// For is the rule for a service as a client sees it, nil without one.
func (r *Rules) For(c *incr.Ctx, client Client, s *config.Service) *config.DestinationRule {
	one, _ := r.rule.Get(c, ask{Client: client, Service: s.Namespace, Host: s.Host})
	return one
}

// PolicyFor is what that rule says, nil without one.
func (r *Rules) PolicyFor(c *incr.Ctx, client Client, s *config.Service) *networking.DestinationRule {
	if one := r.For(c, client, s); one != nil {
		return one.Spec
	}
	return nil
}

// Merged is the rule that several make together, by its key (their keys, joined); ok is false where
// there is none.
func (r *Rules) Merged(c *incr.Ctx, key string) (rule *config.DestinationRule, ok bool) {
	return r.merged.Get(c, key)
}

// Selected are the selectors of its namespace's rules that a proxy answers, joined.
func (r *Rules) Selected(c *incr.Ctx, namespace string, labels map[string]string) string {
	var out []string
	for _, i := range r.selecting.Of(c, namespace) {
		selector := i.Value.Value.Spec.GetWorkloadSelector().GetMatchLabels()
		if len(selector) > 0 && istio.Selects(selector, labels) {
			out = append(out, endpoint.Selector(selector))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), endpoint.SelectorSeparator)
}
