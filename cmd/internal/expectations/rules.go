package expectations

import (
	"cmp"
	"maps"
	"slices"

	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// Rule is a part of an object that decides about requests.
type Rule = rules.Rule

// tally is the rules that were found, by what they are, and those that were touched.
type tally struct {
	order   []Rule
	known   map[Rule]bool
	touched map[Rule]bool
}

func (t *tally) add(r Rule) {
	if r.Object != "" && !t.known[r] {
		t.known[r] = true
		t.order = append(t.order, r)
	}
}

// rules returns those of all proxies that the file has or a request came to, and of objects of
// which none of these has anything.
func (w *world) rules(results []Result, objects []admin.Object, places rules.Places) ([]Rule, error) {
	t := &tally{known: map[Rule]bool{}, touched: map[Rule]bool{}}
	for name := range w.file.Workloads {
		if _, err := w.config(name); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(w.proxies) {
		if c := w.proxies[name].config; c != nil {
			t.all(c)
		}
	}
	for _, r := range results {
		for _, at := range r.Walks {
			t.touch(w.proxies[at.Workload].config, at.Outcome)
		}
	}
	has := map[[2]string]bool{}
	for _, r := range t.order {
		has[[2]string{r.Kind, r.Object}] = true
	}
	for _, o := range objects {
		name := [2]string{o.Kind, o.Key}
		if slices.Contains([]string{rules.VirtualService, rules.AuthorizationPolicy}, o.Kind) && o.Served && !has[name] {
			t.order = append(t.order, Rule{Kind: o.Kind, Object: o.Key, Rule: "no workload of the file has a rule of it"})
		}
	}
	return t.owned(places), nil
}

// owned are the rules by the objects that people wrote: of one that several derived objects have,
// all are touched if one is.
func (t *tally) owned(places rules.Places) []Rule {
	all, at := []Rule{}, map[Rule]int{}
	for _, r := range t.order {
		touched := t.touched[r]
		places.Own(&r)
		i, known := at[r]
		if !known {
			i = len(all)
			at[r] = i
			all = append(all, r)
		}
		all[i].Touched = all[i].Touched || touched
	}
	slices.SortStableFunc(all, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Object, b.Object))
	})
	return all
}

// all notes what a configuration has.
func (t *tally) all(c *simulator.Config) {
	for _, rc := range c.Routes {
		for _, v := range rc.VirtualHosts {
			for _, r := range v.Routes {
				t.add(rules.OfRoute(r))
			}
		}
	}
	for _, l := range c.Listeners {
		for _, chain := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
			t.add(rules.OfChain(l, chain))
			for _, f := range chain.GetFilters() {
				for _, p := range policies(f.GetTypedConfig()) {
					t.add(rules.OfPolicy(p))
				}
			}
		}
	}
	for _, v := range c.Clusters {
		t.add(rules.OfCluster(v))
	}
}

// touch notes what a walk came to.
func (t *tally) touch(c *simulator.Config, o *simulator.Outcome) {
	for _, r := range rules.Touched(c, o) {
		t.touched[r] = true
	}
}

// policies are the names of RBAC's policies in a network filter, in the filters of a connection
// manager too.
func policies(a *anypb.Any) (names []string) {
	var (
		hcm     hcmv3.HttpConnectionManager
		network networkrbacv3.RBAC
	)
	switch {
	case typed(a, &network):
		return sortedKeys(network.GetRules().GetPolicies())
	case typed(a, &hcm):
		for _, f := range hcm.HttpFilters {
			var r httprbacv3.RBAC
			if typed(f.GetTypedConfig(), &r) {
				names = append(names, sortedKeys(r.GetRules().GetPolicies())...)
			}
		}
	}
	return names
}

func typed[T proto.Message](a *anypb.Any, into T) bool {
	return a != nil && a.MessageIs(into) && a.UnmarshalTo(into) == nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
