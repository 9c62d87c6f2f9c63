package rule

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// pool is which rules of a namespace are asked.
type pool int

const (
	// localRules count for clients of the namespace itself, privateRules for them alone,
	// exportedRules for others.
	localRules pool = iota
	privateRules
	exportedRules
)

// groupKey is a host's rules in a pool of a namespace.
type groupKey struct {
	Pool      pool
	Namespace string
	Host      string
}

// group is rules for a host that count as one.
type group struct {
	// Keys are those of the rows, the oldest first, joined by commas.
	Keys string
	// Exports are the namespaces that it is for, joined by commas; empty: all.
	Exports string
	// Selecting: it is for workloads that the selector (as endpoint.Selector writes it) selects.
	Selecting bool
	Selector  string
}

const listSeparator = ","

func (r *Rules) addGroups(graph *incr.Graph) {
	r.groups = incr.NewFunc(graph, "rule groups", slices.Equal, func(c *incr.Ctx, k groupKey) ([]group, error) {
		var list []*config.DestinationRule
		defaults := r.mesh.Exports(c).DestinationRules
		for _, i := range r.byHost.Of(c, Key{k.Namespace, k.Host}) {
			if k.Pool.has(i.Value.Value, defaults) {
				list = append(list, i.Value.Value)
			}
		}
		slices.SortFunc(list, func(a, b *config.DestinationRule) int { return a.Before(b.Meta) })
		var out []group
		for _, group := range config.GroupRules(list) {
			out = append(out, describeGroup(group))
		}
		return out, nil
	})
	r.merged = incr.NewFunc(graph, "merged rule", same, func(c *incr.Ctx, keys string) (*config.DestinationRule, error) {
		var list []*config.DestinationRule
		for key := range strings.SplitSeq(keys, listSeparator) {
			if one, ok := r.rows.Get(c, key); ok {
				list = append(list, one.Value)
			}
		}
		if len(list) == 0 {
			return nil, incr.Absent
		}
		out := *config.MergeRules(list)
		out.Key = keys
		return &out, nil
	})
}

func (p pool) has(r *config.DestinationRule, defaults []string) bool {
	switch p {
	case localRules:
		return r.Local()
	case privateRules:
		return r.Local() && r.Private(defaults)
	}
	return !r.Private(defaults)
}

func describeGroup(list []*config.DestinationRule) group {
	keys := make([]string, len(list))
	for i, r := range list {
		keys[i] = r.Key
	}
	selector := list[0].Spec.GetWorkloadSelector()
	return group{
		Keys:      strings.Join(keys, listSeparator),
		Exports:   strings.Join(list[0].Exports(), listSeparator),
		Selecting: selector != nil,
		Selector:  endpoint.Selector(selector.GetMatchLabels()),
	}
}

// visibleIn reports whether clients of a namespace see a group of another.
func (r *group) visibleIn(client, own string) bool {
	if r.Exports == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(r.Exports, listSeparator), func(e string) bool {
		return e == "*" || e == client || e == "." && own == client
	})
}

func same(a, b *config.DestinationRule) bool { return a == b }
