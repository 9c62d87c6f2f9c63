// Package rules says of what proxies have which rules of which objects it was made from: routes of
// VirtualServices, rules of AuthorizationPolicies, subsets of DestinationRules.
package rules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

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
	// Touched says that a request came to it.
	Touched bool `json:"touched"`
	// route is the name that the proxy's route has.
	route string
}

// Kinds that have rules.
const (
	VirtualService      = "VirtualService"
	AuthorizationPolicy = "AuthorizationPolicy"
	DestinationRule     = "DestinationRule"
)

// Kinds are all of them.
var Kinds = []string{VirtualService, AuthorizationPolicy, DestinationRule}

// Touched are the rules that a walk came to, in the order in which it did.
func Touched(c *simulator.Config, o *simulator.Outcome) (all []Rule) {
	add := func(r Rule) {
		if r.Object != "" && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, a := range o.Authorizations {
		if a.Policy != "" {
			add(OfPolicy(a.Policy))
		}
	}
	for _, l := range c.Listeners {
		chains := append(slices.Clone(l.FilterChains), l.DefaultFilterChain)
		if n := o.Way.ChainNumber; n > 0 && n <= len(chains) && l.Name == o.Way.Listener {
			add(OfChain(l, chains[n-1]))
		}
	}
	for _, rc := range c.Routes {
		for _, v := range rc.VirtualHosts {
			if n := o.Way.RouteNumber; n > 0 && n <= len(v.Routes) && rc.Name == o.Way.RouteConfiguration && v.Name == o.Way.VirtualHost {
				add(OfRoute(v.Routes[n-1]))
			}
		}
	}
	for _, s := range append(slices.Clone(o.Upstream.Clusters), o.Upstream.Mirrors...) {
		for _, v := range c.Clusters {
			if v.Name == s.Cluster {
				add(OfCluster(v))
			}
		}
	}
	return all
}

// madeOf is the object that metadata name: /apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME.
var madeOf = regexp.MustCompile(`^/apis/[^/]+/[^/]+/namespaces/([^/]+)/([^/]+)/([^/]+)$`)

// Place is where an object stands that people wrote.
type Place struct{ Kind, Key, Source string }

// Places are those of the objects that proxies' configurations name, by kind and key: an object
// that a plugin derived has the place of that which people wrote.
type Places map[[2]string]Place

// Add notes an object, and where it stands. of is that which people wrote; nil: it is itself.
func (p Places) Add(kind, key, source string, of *admin.RowName) {
	at := Place{kind, key, source}
	if of != nil {
		_, at.Kind, _ = strings.Cut(of.Table, "/")
		at.Key = of.Key
	}
	p[[2]string{strings.ToLower(kind), key}] = at
}

// Own makes a rule of an object that a plugin derived one of that which people wrote, and says
// where that stands.
func (p Places) Own(r *Rule) {
	if at, known := p.of(r.Kind, r.Object, r.route); known {
		r.Kind, r.Object, r.Source = at.Kind, at.Key, at.Source
	}
}

// of is the place of an object that a route is of.
func (p Places) of(kind, key, route string) (Place, bool) {
	kind = strings.ToLower(kind)
	at, known := p[[2]string{kind, key}]
	if !known || strings.EqualFold(at.Kind, kind) && at.Key == key {
		return at, known
	}
	// Several objects may be in one that was derived; its routes are named after the one of each.
	if own, there := p[[2]string{strings.ToLower(at.Kind), namedBy(route)}]; there && own.Kind == at.Kind {
		return own, true
	}
	return at, true
}

// namedBy is the object that a derived route is named after, NAMESPACE.NAME.NUMBER; empty: it is
// named otherwise.
func namedBy(route string) string {
	namespace, rest, _ := strings.Cut(route, ".")
	i := strings.LastIndex(rest, ".")
	if i < 0 {
		return ""
	}
	return namespace + "/" + rest[:i]
}

// named are names of objects in a text.
var named = regexp.MustCompile(`/apis/[^/\s]+/[^/\s]+/namespaces/([^/\s]+)/([^/\s]+)/([^/\s]+)`)

// Say puts the objects that people wrote, with their places, in the place of names in the reasons
// of a walk.
func (p Places) Say(o *simulator.Outcome) {
	for i := range o.Steps {
		step := &o.Steps[i]
		step.Because = named.ReplaceAllStringFunc(step.Because, func(name string) string {
			part := named.FindStringSubmatch(name)
			at, known := p.of(strings.ReplaceAll(part[2], "-", ""), part[1]+"/"+part[3], step.Chosen)
			switch {
			case !known:
				return name
			case at.Source == "":
				return at.Kind + " " + at.Key
			}
			return fmt.Sprintf("%s %s (%s)", at.Kind, at.Key, at.Source)
		})
	}
}

// Object is the object of a kind, NAMESPACE/NAME, that metadata name; empty: they name none.
func Object(m *corev3.Metadata, kind string) string {
	found := madeOf.FindStringSubmatch(m.GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue())
	if found == nil || found[2] != kind {
		return ""
	}
	return found[1] + "/" + found[3]
}

// OfRoute is what a route of a proxy was made from; without an Object: of no VirtualService.
func OfRoute(r *routev3.Route) Rule {
	text := describeMatch(r.GetMatch())
	if r.Name != "" && r.Name != "default" {
		text = r.Name + ": " + text
	}
	return Rule{Kind: VirtualService, Object: Object(r.GetMetadata(), "virtual-service"), Rule: "route " + text, route: r.Name}
}

// OfChain is what a filter chain of a proxy was made from that leads connections to where a route
// for TCP or TLS says; without an Object: it is of no VirtualService. Chains of gateways name none,
// as istiod's don't.
func OfChain(l *listenerv3.Listener, c *listenerv3.FilterChain) Rule {
	parts := []string{"tcp route"}
	m := c.GetFilterChainMatch()
	if len(m.GetServerNames()) > 0 {
		parts = []string{"tls route sni " + strings.Join(m.ServerNames, ", ")}
	}
	var to []string
	for _, p := range m.GetPrefixRanges() {
		to = append(to, fmt.Sprintf("%s/%d", p.AddressPrefix, p.GetPrefixLen().GetValue()))
	}
	if len(to) > 0 {
		parts = append(parts, "to "+strings.Join(to, ", "))
	}
	if port := cmp.Or(m.GetDestinationPort().GetValue(), l.GetAddress().GetSocketAddress().GetPortValue()); port != 0 {
		parts = append(parts, fmt.Sprintf("port %d", port))
	}
	return Rule{Kind: VirtualService, Object: Object(c.GetMetadata(), "virtual-service"), Rule: strings.Join(parts, " ")}
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

// OfCluster is the subset that a cluster is; without an Object: it is none.
func OfCluster(c *clusterv3.Cluster) Rule {
	n, ok := SplitCluster(c.Name)
	if !ok || n.Subset == "" {
		return Rule{}
	}
	return Rule{Kind: DestinationRule, Object: Object(c.Metadata, "destination-rule"), Rule: "subset " + n.Subset}
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

// OfPolicy is the rule that a policy of RBAC was made from; without an Object: of no
// AuthorizationPolicy.
func OfPolicy(name string) Rule {
	p := policyOf(name)
	return Rule{Kind: AuthorizationPolicy, Object: p.object(), Rule: fmt.Sprintf("rules[%s]", p.number)}
}

// Named is what a cluster's name says.
type Named struct{ Port, Subset, Host string }

// SplitCluster reads the name of a cluster for outbound traffic, of connections or datagrams; ok is
// false for others.
func SplitCluster(name string) (n Named, ok bool) {
	const parts = 4
	p := strings.Split(name, "|")
	if len(p) != parts || p[0] != "outbound" && p[0] != "outbound_udp" {
		return n, false
	}
	return Named{p[1], p[2], p[3]}, true
}
