package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	unreachableRule  = "IST0130"
	ineffectiveMatch = "IST0131"
	badDelegation    = "COX3004"
	lostDelegate     = "COX3005"
)

// unreachableRoutes finds HTTP routes, and matches of them, that an earlier route takes everything from: one without a match, with the same
// match, or with a shorter prefix.
func unreachableRoutes(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		for i, r := range v.spec.Http {
			w.unreachable(v, i, r)
		}
	}
}

func (w *world) unreachable(v item[*networking.VirtualService], i int, r *networking.HTTPRoute) {
	matches := r.GetMatch()
	if len(matches) == 0 {
		matches = []*networking.HTTPMatchRequest{{}}
	}
	dead, by := 0, 0
	var ineffective []finding.Finding
	for j, m := range matches {
		k, found := takenBefore(v.spec.Http[:i], m)
		if !found {
			continue
		}
		dead++
		by = k
		ineffective = append(ineffective, finding.Finding{
			Code: ineffectiveMatch, Severity: finding.Info, Field: fmt.Sprintf("spec.http[%d].match[%d]", i, j),
			Message: fmt.Sprintf("VirtualService rule %s match %s is not used (duplicate/overlapping match in rule %s).", ruleName(i, r), matchName(j, m), ruleName(k, v.spec.Http[k])),
		})
	}
	switch {
	case dead == 0:
	case dead == len(matches):
		w.report(v.Resource, finding.Warnf(unreachableRule, fmt.Sprintf("spec.http[%d]", i), "VirtualService rule %s not used (rule %s matches all of it)", ruleName(i, r), ruleName(by, v.spec.Http[by])).
			WithHint("routes are tried in order: put the narrower one first"))
	default:
		for _, f := range ineffective {
			w.report(v.Resource, f)
		}
	}
}

func ruleName(i int, r *networking.HTTPRoute) string {
	if r.GetName() != "" {
		return fmt.Sprintf("%q", r.Name)
	}
	return fmt.Sprintf("#%d", i)
}

func matchName(i int, m *networking.HTTPMatchRequest) string {
	if m.GetName() != "" {
		return fmt.Sprintf("%q", m.Name)
	}
	return fmt.Sprintf("#%d", i)
}

// takenBefore returns the first route that takes all that a match takes.
func takenBefore(earlier []*networking.HTTPRoute, m *networking.HTTPMatchRequest) (int, bool) {
	for k, r := range earlier {
		if len(r.GetMatch()) == 0 || slices.ContainsFunc(r.Match, func(wider *networking.HTTPMatchRequest) bool { return takes(wider, m) }) {
			return k, true
		}
	}
	return 0, false
}

// takes says whether a match takes all requests that another takes. It errs on the side of no.
func takes(wider, narrower *networking.HTTPMatchRequest) bool {
	a, b := wider, narrower
	if a.GetIgnoreUriCase() != b.GetIgnoreUriCase() || len(a.GetWithoutHeaders()) > 0 || len(b.GetWithoutHeaders()) > 0 {
		return sameMatch(a, b)
	}
	return takesText(a.GetUri(), b.GetUri()) && takesText(a.GetScheme(), b.GetScheme()) && takesText(a.GetMethod(), b.GetMethod()) &&
		takesText(a.GetAuthority(), b.GetAuthority()) && takesAll(a.GetHeaders(), b.GetHeaders()) && takesAll(a.GetQueryParams(), b.GetQueryParams()) &&
		(a.GetPort() == 0 || a.GetPort() == b.GetPort()) && (a.GetSourceNamespace() == "" || a.GetSourceNamespace() == b.GetSourceNamespace()) &&
		selects(a.GetSourceLabels(), b.GetSourceLabels()) && (len(a.GetGateways()) == 0 || containsAll(a.GetGateways(), b.GetGateways()))
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
				w.report(v.Resource, finding.Errorf(badDelegation, at, "VirtualService %s has hosts of its own, so that nothing can be delegated to it", key).WithHint("remove its hosts"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; len(v.spec.Hosts) == 0 && !used[name] {
			w.report(v.Resource, finding.Warnf(lostDelegate, "metadata.name", "no VirtualService delegates to %s, which has no hosts: it has no effect", name))
		}
	}
}
