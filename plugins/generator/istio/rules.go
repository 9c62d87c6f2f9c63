package istio

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// rules find the DestinationRule that counts for a client's traffic to a host.
type rules struct {
	byHost   *incr.Index[ruleKey, string, row[*config.DestinationRule]]
	wildcard *incr.Index[string, string, row[*config.DestinationRule]]
	rule     *incr.Func[ruleAsk, *config.DestinationRule]
}

type ruleKey struct{ Namespace, Host string }

// ruleAsk is a client's namespace, and the host and namespace of a service.
type ruleAsk struct{ Client, Service, Host string }

func (g *graph) addRules() {
	g.byHost = incr.NewIndex(g.destinationRules, "rules by host", func(_ string, r row[*config.DestinationRule]) []ruleKey {
		if config.IsWildcard(r.value.Host) {
			return nil
		}
		return []ruleKey{{r.value.Namespace, r.value.Host}}
	})
	g.wildcard = incr.NewIndex(g.destinationRules, "wildcard rules", func(_ string, r row[*config.DestinationRule]) []string {
		if config.IsWildcard(r.value.Host) {
			return []string{r.value.Namespace}
		}
		return nil
	})
	g.rule = incr.NewFunc(g.Graph, "rule", samePointer[config.DestinationRule], func(c *incr.Ctx, a ruleAsk) (*config.DestinationRule, error) {
		root := g.root.Of(c, only)
		for i, namespace := range []string{a.Client, a.Service, root} {
			if namespace == "" || i == 0 && namespace == root {
				continue
			}
			if r := g.ruleIn(c, namespace, a); r != nil {
				return r, nil
			}
		}
		return nil, incr.Absent
	})
}

// ruleIn is the most specific rule of a namespace that clients of another may use.
func (g *graph) ruleIn(c *incr.Ctx, namespace string, a ruleAsk) *config.DestinationRule {
	defaults := g.exports.Of(c, only).destinationRules
	usable := func(r *config.DestinationRule) bool {
		return len(r.Spec.GetWorkloadSelector().GetMatchLabels()) == 0 && r.VisibleIn(a.Client, defaults)
	}
	if r := oldest(g.byHost.Of(c, ruleKey{namespace, a.Host}), usable); r != nil {
		return r
	}
	var best *config.DestinationRule
	for _, i := range g.wildcard.Of(c, namespace) {
		r := i.Value.value
		if !config.Covers(r.Host, a.Host) || !usable(r) {
			continue
		}
		if best == nil || config.MoreSpecific(r.Host, best.Host) < 0 || r.Host == best.Host && r.Before(best.Meta) < 0 {
			best = r
		}
	}
	return best
}

func oldest(list []incr.Item[string, row[*config.DestinationRule]], usable func(*config.DestinationRule) bool) *config.DestinationRule {
	var found []*config.DestinationRule
	for _, i := range list {
		if usable(i.Value.value) {
			found = append(found, i.Value.value)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *config.DestinationRule) int { return a.Before(b.Meta) })
}

// ruleFor is the rule for a service, nil without one.
func (g *graph) ruleFor(c *incr.Ctx, client string, s *config.Service) *config.DestinationRule {
	r, _ := g.rule.Get(c, ruleAsk{Client: client, Service: s.Namespace, Host: s.Host})
	return r
}
