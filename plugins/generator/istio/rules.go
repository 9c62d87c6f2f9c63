package istio

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// rules find the DestinationRule that counts for a client's traffic to a host.
type rules struct {
	byHost   *incr.Index[ruleKey, string, tables.Row[*config.DestinationRule]]
	wildcard *incr.Index[string, string, tables.Row[*config.DestinationRule]]
	// selecting are the rules of a namespace that are for some of its workloads.
	selecting  *incr.Index[string, string, tables.Row[*config.DestinationRule]]
	ruleGroups *incr.Func[groupKey, []ruleGroup]
	// merged is the rule that several make together, by their keys.
	merged *incr.Func[string, *config.DestinationRule]
	rule   *incr.Func[ruleAsk, *config.DestinationRule]
}

type ruleKey struct{ Namespace, Host string }

// ruleAsk is a client's namespace and the selectors that it answers, and the host and namespace of a service.
type ruleAsk struct{ Client, Selected, Service, Host string }

func (g *graph) addRules() {
	g.byHost = incr.NewIndex(g.tables.DestinationRules, "rules by host", func(_ string, r tables.Row[*config.DestinationRule]) []ruleKey {
		return []ruleKey{{r.Value.Namespace, r.Value.Host}}
	})
	g.wildcard = incr.NewIndex(g.tables.DestinationRules, "wildcard rules", func(_ string, r tables.Row[*config.DestinationRule]) []string {
		if istio.IsWildcard(r.Value.Host) {
			return []string{r.Value.Namespace}
		}
		return nil
	})
	g.selecting = incr.NewIndex(g.tables.DestinationRules, "rules for workloads", func(_ string, r tables.Row[*config.DestinationRule]) []string {
		if r.Value.Spec.GetWorkloadSelector() != nil {
			return []string{r.Value.Namespace}
		}
		return nil
	})
	g.addRuleGroups()
	g.rule = incr.NewFunc(g.Graph, "rule", samePointer[config.DestinationRule], func(c *incr.Ctx, a ruleAsk) (*config.DestinationRule, error) {
		if r, ok := g.merged.Get(c, choice(g.candidates(c, a), a.Selected)); ok {
			return r, nil
		}
		return nil, incr.Absent
	})
}

// candidates are the groups for the most specific host in the first place that has any: the client's namespace, the service's, the
// root namespace. What others there say less specifically is hidden, even if no candidate selects the client.
func (g *graph) candidates(c *incr.Ctx, a ruleAsk) []ruleGroup {
	root := g.mesh.Root(c)
	own := localRules
	if a.Client == root {
		own = privateRules // what the root namespace exports comes last, for its own clients too
	}
	if list := g.mostSpecific(c, own, a.Client, a.Host); len(list) > 0 {
		return list
	}
	for _, namespace := range []string{a.Service, root} {
		list := slices.DeleteFunc(slices.Clone(g.mostSpecific(c, exportedRules, namespace, a.Host)), func(r ruleGroup) bool {
			return !r.visibleIn(a.Client, namespace)
		})
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// mostSpecific are the groups for the most specific host of a pool that covers a host.
func (g *graph) mostSpecific(c *incr.Ctx, p rulePool, namespace, host string) []ruleGroup {
	if list := g.ruleGroups.Of(c, groupKey{p, namespace, host}); len(list) > 0 {
		return list
	}
	var hosts []string
	for _, i := range g.wildcard.Of(c, namespace) {
		if h := i.Value.Value.Host; h != host && istio.Covers(h, host) {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, istio.MoreSpecific)
	for _, h := range slices.Compact(hosts) {
		if list := g.ruleGroups.Of(c, groupKey{p, namespace, h}); len(list) > 0 {
			return list
		}
	}
	return nil
}

// choice is the first group that selects the client, otherwise the last that selects nobody in particular.
func choice(list []ruleGroup, selected string) string {
	keys := ""
	for _, r := range list {
		switch {
		case !r.Selecting:
			keys = r.Keys
		case r.Selector == "" || slices.Contains(strings.Split(selected, selectorSeparator), r.Selector):
			return r.Keys
		}
	}
	return keys
}

// ruleFor is the rule for a service as clients of a scope see it, nil without one.
func (g *graph) ruleFor(c *incr.Ctx, client Scope, s *config.Service) *config.DestinationRule {
	r, _ := g.rule.Get(c, ruleAsk{Client: client.Namespace, Selected: client.Selected, Service: s.Namespace, Host: s.Host})
	return r
}

// selectedBy are the selectors of its namespace's rules that a proxy answers, as Scope.Selected holds them.
func (g *graph) selectedBy(c *incr.Ctx, namespace string, labels map[string]string) string {
	var out []string
	for _, i := range g.selecting.Of(c, namespace) {
		selector := i.Value.Value.Spec.GetWorkloadSelector().GetMatchLabels()
		if len(selector) > 0 && istio.Selects(selector, labels) {
			out = append(out, endpoint.Selector(selector))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), selectorSeparator)
}
