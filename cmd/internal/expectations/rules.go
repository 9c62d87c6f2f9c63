package expectations

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// Rule is a part of an object that decides about requests: a route of a VirtualService, a rule of
// an AuthorizationPolicy, a subset of a DestinationRule.
type Rule struct {
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Rule   string `json:"rule"`
	// Source is the object's place.
	Source string `json:"source,omitempty"`
	// Touched says that a request of the file came to it.
	Touched bool `json:"touched"`
}

// Kinds of which rules are counted.
const (
	virtualService      = "VirtualService"
	authorizationPolicy = "AuthorizationPolicy"
	destinationRule     = "DestinationRule"
)

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

// rules returns those of all configurations, and of objects of which no workload has anything.
func (w *world) rules(results []Result, objects []admin.Object, dir string) []Rule {
	t := &tally{known: map[Rule]bool{}, touched: map[Rule]bool{}}
	for _, name := range slices.Sorted(maps.Keys(w.configs)) {
		t.all(w.configs[name])
	}
	for _, r := range results {
		for _, at := range r.Walks {
			t.touch(w.configs[at.Workload], at.Outcome)
		}
	}
	has, places := map[[2]string]bool{}, map[[2]string]string{}
	for _, r := range t.order {
		has[[2]string{r.Kind, r.Object}] = true
	}
	for _, o := range objects {
		name := [2]string{o.Kind, o.Key}
		places[name] = below(o.Source, dir)
		if slices.Contains([]string{virtualService, authorizationPolicy}, o.Kind) && o.Served && !has[name] {
			t.order = append(t.order, Rule{Kind: o.Kind, Object: o.Key, Rule: "no workload of the file has a rule of it"})
		}
	}
	for i := range t.order {
		r := &t.order[i]
		r.Touched = t.touched[*r]
		r.Source = places[[2]string{r.Kind, r.Object}]
	}
	slices.SortStableFunc(t.order, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Object, b.Object))
	})
	return t.order
}

// all notes what a configuration has.
func (t *tally) all(c *simulator.Config) {
	for _, rc := range c.Routes {
		for _, v := range rc.VirtualHosts {
			for _, r := range v.Routes {
				t.add(ruleOfRoute(r))
			}
		}
	}
	for _, l := range c.Listeners {
		for _, chain := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
			for _, f := range chain.GetFilters() {
				for _, p := range policies(f.GetTypedConfig()) {
					t.add(policyOf(p).rule())
				}
			}
		}
	}
	for _, v := range c.Clusters {
		t.add(ruleOfCluster(v))
	}
}

// touch notes what a walk came to.
func (t *tally) touch(c *simulator.Config, o *simulator.Outcome) {
	for _, rc := range c.Routes {
		for _, v := range rc.VirtualHosts {
			if n := o.Way.RouteNumber; n > 0 && n <= len(v.Routes) && rc.Name == o.Way.RouteConfiguration && v.Name == o.Way.VirtualHost {
				t.touched[ruleOfRoute(v.Routes[n-1])] = true
			}
		}
	}
	for _, a := range o.Authorizations {
		if a.Policy != "" {
			t.touched[policyOf(a.Policy).rule()] = true
		}
	}
	for _, s := range append(slices.Clone(o.Upstream.Clusters), o.Upstream.Mirrors...) {
		for _, v := range c.Clusters {
			if v.Name == s.Cluster {
				t.touched[ruleOfCluster(v)] = true
			}
		}
	}
}

// madeOf is the object that metadata name: /apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME.
var madeOf = regexp.MustCompile(`^/apis/[^/]+/[^/]+/namespaces/([^/]+)/([^/]+)/([^/]+)$`)

func objectOf(m *corev3.Metadata, kind string) string {
	found := madeOf.FindStringSubmatch(m.GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue())
	if found == nil || found[2] != kind {
		return ""
	}
	return found[1] + "/" + found[3]
}

func ruleOfRoute(r *routev3.Route) Rule {
	text := describeMatch(r.GetMatch())
	if r.Name != "" && r.Name != "default" {
		text = r.Name + ": " + text
	}
	return Rule{Kind: virtualService, Object: objectOf(r.GetMetadata(), "virtual-service"), Rule: "route " + text}
}

// describeMatch says what a route asks for.
func describeMatch(m *routev3.RouteMatch) string {
	var parts []string
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		parts = append(parts, "prefix "+p.Prefix)
	case *routev3.RouteMatch_Path:
		parts = append(parts, "path "+p.Path)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		parts = append(parts, "path prefix "+p.PathSeparatedPrefix)
	case *routev3.RouteMatch_SafeRegex:
		parts = append(parts, "regex "+p.SafeRegex.GetRegex())
	}
	for _, h := range m.GetHeaders() {
		parts = append(parts, strings.TrimSpace("header "+h.Name+" "+value(h)))
	}
	for _, q := range m.GetQueryParameters() {
		parts = append(parts, strings.TrimSpace("parameter "+q.Name+" "+exact(q.GetStringMatch().GetExact())))
	}
	return strings.Join(parts, ", ")
}

func value(h *routev3.HeaderMatcher) string {
	m := h.GetStringMatch()
	text := cmp.Or(exact(m.GetExact()), affix(m.GetPrefix(), "", "…"), affix(m.GetSuffix(), "…", ""), affix(m.GetSafeRegex().GetRegex(), "~ ", ""))
	if h.InvertMatch {
		return "not " + text
	}
	return text
}

func exact(text string) string { return affix(text, "= ", "") }

func affix(text, before, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func ruleOfCluster(c *clusterv3.Cluster) Rule {
	n, ok := splitCluster(c.Name)
	if !ok || n.subset == "" {
		return Rule{}
	}
	return Rule{Kind: destinationRule, Object: objectOf(c.Metadata, "destination-rule"), Rule: "subset " + n.subset}
}

// policy is a rule of an AuthorizationPolicy, as the names of RBAC's policies say it.
type policy struct{ namespace, name, number string }

var policyName = regexp.MustCompile(`ns\[([^\]]*)\]-policy\[([^\]]*)\]-rule\[(\d+)\]`)

// policyOf reads the name of an RBAC policy; of others' nothing.
func policyOf(name string) policy {
	found := policyName.FindStringSubmatch(name)
	if found == nil {
		return policy{}
	}
	return policy{found[1], found[2], found[3]}
}

func (p policy) object() string {
	if p.name == "" {
		return ""
	}
	return p.namespace + "/" + p.name
}

func (p policy) rule() Rule {
	return Rule{Kind: authorizationPolicy, Object: p.object(), Rule: fmt.Sprintf("rules[%s]", p.number)}
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
