package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	unreachableRule  = "IST0130"
	ineffectiveMatch = "IST0131"
	badDelegation    = "COX3004"
	lostDelegate     = "COX3005"
	overriddenRoot   = "COX3012"
)

// unreachableRoutes finds routes, and matches of them, that an earlier route takes everything from:
// one without a match, with the same match, or with a wider one, such as a shorter prefix.
func unreachableRoutes(s *networking.VirtualService) (found []finding.Finding) {
	http := &ordered[*networking.HTTPMatchRequest]{list: "http", takes: takes, repeats: repeatsHTTP}
	tls := &ordered[*networking.TLSMatchAttributes]{list: "tls", takes: takesTLS, repeats: both(takesTLS)}
	tcp := &ordered[*networking.L4MatchAttributes]{list: "tcp", takes: takesTCP, repeats: both(takesTCP)}
	for _, r := range s.GetHttp() {
		found = append(found, http.next(r.GetName(), r.GetMatch())...)
	}
	for _, r := range s.GetTls() {
		found = append(found, tls.next("", r.GetMatch())...)
	}
	for _, r := range s.GetTcp() {
		found = append(found, tcp.next("", r.GetMatch())...)
	}
	return found
}

// ordered are rules of one list that come before the next one.
type ordered[M any] struct {
	list string
	// takes reports whether a match takes all that another one takes, repeats whether that is worth
	// saying of two matches of one rule.
	takes   func(wider, narrower M) bool
	repeats func(wider, narrower M) bool
	names   []string
	matches [][]M
}

// next adds a rule, and returns what those before it leave without effect: matches that an earlier
// one takes, and the rule, if each of its matches stands in an earlier rule, or one without matches
// comes before.
func (o *ordered[M]) next(name string, matches []M) (found []finding.Finding) {
	i := len(o.names)
	if name = fmt.Sprintf("%q", name); name == `""` {
		name = fmt.Sprintf("#%d", i)
	}
	said := matches
	if len(matches) == 0 {
		matches = make([]M, 1) // it takes all
	}
	taken, whole, by := 0, 0, ""
	for j, m := range matches {
		k := slices.IndexFunc(o.matches, func(earlier []M) bool {
			return len(earlier) == 0 || slices.ContainsFunc(earlier, func(wider M) bool { return o.takes(wider, m) })
		})
		rule := name
		switch {
		case k >= 0:
			by, rule = o.names[k], o.names[k]
			taken++
			if len(o.matches[k]) == 0 || len(said) == 0 {
				whole++
				continue
			}
			if slices.ContainsFunc(o.matches[k], func(wider M) bool { return o.takes(wider, m) && o.takes(m, wider) }) {
				whole++
			}
		case !slices.ContainsFunc(matches[:j], func(wider M) bool { return o.repeats(wider, m) }):
			continue
		}
		found = append(found, finding.Finding{
			Code: ineffectiveMatch, Severity: finding.Info, Field: fmt.Sprintf("spec.%s[%d].match[%d]", o.list, i, j),
			Message: fmt.Sprintf("VirtualService rule %s match %s is not used (duplicate/overlapping match in rule %s).", name, matchName(j, m), rule),
		})
	}
	o.names, o.matches = append(o.names, name), append(o.matches, said)
	switch {
	case whole == len(matches):
		found = append(found, finding.Warnf(unreachableRule, fmt.Sprintf("spec.%s[%d]", o.list, i),
			"VirtualService rule %s not used (rule %s matches all of it)", name, by).
			WithHint("routes are tried in order: put the narrower one first"))
	case taken == len(matches): // nothing of it is left
		for n := range found {
			found[n].Severity, found[n].Hint = finding.Warning, "the whole rule is not used: routes are tried in order, put the narrower one first"
		}
	}
	return found
}

func matchName(i int, m any) string {
	if named, ok := m.(interface{ GetName() string }); ok && named.GetName() != "" {
		return fmt.Sprintf("%q", named.GetName())
	}
	return fmt.Sprintf("#%d", i)
}

// takesTLS is takes for connections by the name that they ask for.
func takesTLS(a, b *networking.TLSMatchAttributes) bool {
	return takesNames(a.GetSniHosts(), b.GetSniHosts()) && takesConnections(a, b)
}

// takesTCP is takes for connections.
func takesTCP(a, b *networking.L4MatchAttributes) bool {
	return (a.GetSourceSubnet() == "" || a.GetSourceSubnet() == b.GetSourceSubnet()) && takesConnections(a, b)
}

// connections are what matches of TLS and TCP have in common.
type connections interface {
	GetDestinationSubnets() []string
	GetPort() uint32
	GetSourceLabels() map[string]string
	GetGateways() []string
	GetSourceNamespace() string
}

func takesConnections(a, b connections) bool {
	return (len(a.GetDestinationSubnets()) == 0 || containsAll(a.GetDestinationSubnets(), b.GetDestinationSubnets())) &&
		(a.GetPort() == 0 || a.GetPort() == b.GetPort()) && (a.GetSourceNamespace() == "" || a.GetSourceNamespace() == b.GetSourceNamespace()) &&
		istio.Selects(a.GetSourceLabels(), b.GetSourceLabels()) && (len(a.GetGateways()) == 0 || containsAll(a.GetGateways(), b.GetGateways()))
}

// takesNames reports whether each narrower name is one of the wider, or below one of their
// wildcards.
func takesNames(wider, narrower []string) bool {
	return len(wider) == 0 || len(narrower) > 0 && !slices.ContainsFunc(narrower, func(n string) bool {
		return !slices.ContainsFunc(wider, func(w string) bool {
			n, w := strings.ToLower(n), strings.ToLower(w)
			below, wildcard := strings.CutPrefix(w, "*")
			return n == w || wildcard && strings.HasSuffix(strings.TrimPrefix(n, "*"), below)
		})
	})
}

// takes reports whether a match takes all requests that another takes. It errs on the side of no.
func takes(wider, narrower *networking.HTTPMatchRequest) bool {
	a, b := wider, narrower
	if a.GetIgnoreUriCase() != b.GetIgnoreUriCase() || len(a.GetWithoutHeaders()) > 0 || len(b.GetWithoutHeaders()) > 0 {
		return sameMatch(a, b)
	}
	return takesText(a.GetUri(), b.GetUri()) && takesText(a.GetScheme(), b.GetScheme()) && takesText(a.GetMethod(), b.GetMethod()) &&
		takesText(a.GetAuthority(), b.GetAuthority()) && takesAll(a.GetHeaders(), b.GetHeaders()) && takesAll(a.GetQueryParams(), b.GetQueryParams()) &&
		(a.GetPort() == 0 || a.GetPort() == b.GetPort()) && (a.GetSourceNamespace() == "" || a.GetSourceNamespace() == b.GetSourceNamespace()) &&
		istio.Selects(a.GetSourceLabels(), b.GetSourceLabels()) && (len(a.GetGateways()) == 0 || containsAll(a.GetGateways(), b.GetGateways()))
}

// repeatsHTTP reports whether a match of a rule is the same as one before it, or has a longer
// prefix.
func repeatsHTTP(wider, narrower *networking.HTTPMatchRequest) bool {
	prefixes := wider.GetUri().GetPrefix() != "" && narrower.GetUri().GetPrefix() != ""
	return takes(wider, narrower) && (prefixes || takes(narrower, wider))
}

// both reports whether two matches take the same.
func both[M any](takes func(wider, narrower M) bool) func(a, b M) bool {
	return func(a, b M) bool { return takes(a, b) && takes(b, a) }
}

// sameMatch compares all but the names.
func sameMatch(a, b *networking.HTTPMatchRequest) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	if a == nil || b == nil {
		return false
	}
	a.Name, b.Name, a.StatPrefix, b.StatPrefix = "", "", "", ""
	return proto.Equal(a, b)
}

func takesAll(wider, narrower map[string]*networking.StringMatch) bool {
	for name, m := range wider {
		other, ok := narrower[name]
		if !ok || !takesText(m, other) {
			return false
		}
	}
	return true
}

func takesText(wider, narrower *networking.StringMatch) bool {
	if wider == nil {
		return true
	}
	prefix, isPrefix := wider.GetMatchType().(*networking.StringMatch_Prefix)
	switch {
	case narrower == nil:
		return isPrefix && prefix.Prefix == "/"
	case proto.Equal(wider, narrower):
		return true
	case !isPrefix:
		return false
	case prefix.Prefix == "/":
		return true
	}
	switch n := narrower.GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		return strings.HasPrefix(n.Prefix, prefix.Prefix)
	case *networking.StringMatch_Exact:
		return strings.HasPrefix(n.Exact, prefix.Prefix)
	}
	return false
}

func containsAll(wider, narrower []string) bool {
	return len(narrower) > 0 && !slices.ContainsFunc(narrower, func(s string) bool { return !slices.Contains(wider, s) })
}

// delegates finds delegates that are not there, and those that nobody delegates to.
func delegates(w *world) {
	type service = item[*networking.VirtualService]
	all, used := map[string]service{}, map[string]bool{}
	for _, v := range of[*networking.VirtualService](w) {
		all[v.Namespace+"/"+v.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		for i, r := range v.spec.Http {
			d := r.GetDelegate()
			if d == nil {
				continue
			}
			namespace := d.Namespace
			if namespace == "" {
				namespace = v.Namespace
			}
			key, at := namespace+"/"+d.Name, fmt.Sprintf("spec.http[%d].delegate", i)
			used[key] = true
			switch to, ok := all[key]; {
			case !ok:
				w.report(v.Resource, missing(at+".name", "delegate virtual service", key))
			case len(to.spec.Hosts) > 0:
				w.report(v.Resource, finding.Errorf(badDelegation, at, "VirtualService %s has hosts of its own, so "+
					"that nothing can be delegated to it", key).WithHint("remove its hosts"))
			default:
				w.overridden(v.Resource, i, r, to.Resource, to.spec)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; len(v.spec.Hosts) == 0 && !used[name] {
			w.report(v.Resource, finding.Warnf(lostDelegate, "metadata.name", "no VirtualService delegates to %s, which has no hosts: it has no effect", name))
		}
	}
}

// overridden reports what a route says that delegates, and a route of the delegate says, too: that
// takes its place whole, as with istiod.
func (w *world) overridden(root *Resource, i int, r *networking.HTTPRoute, delegate *Resource, to *networking.VirtualService) {
	fields := r.ProtoReflect().Descriptor().Fields()
	for _, name := range []protoreflect.Name{"rewrite", "timeout", "retries", "fault", "mirror", "cors_policy", "headers"} {
		d := fields.ByName(name)
		if !r.ProtoReflect().Has(d) {
			continue
		}
		for j, own := range to.Http {
			if own.ProtoReflect().Has(d) {
				w.report(root, finding.Warnf(overriddenRoot, fmt.Sprintf("spec.http[%d].%s", i, d.JSONName()),
					"it doesn't count for requests that spec.http[%d] of VirtualService %s/%s takes: that has a %s of its own",
					j, delegate.Namespace, delegate.Name, d.JSONName()).
					WithHint("say all of it there, or leave it out there"))
				break
			}
		}
	}
}
