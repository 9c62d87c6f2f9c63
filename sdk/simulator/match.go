package simulator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

func some[T any](list []T, is func(T) bool) bool { return slices.ContainsFunc(list, is) }

func every[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !is(v) })
}

// matchString: https://www.envoyproxy.io/docs/envoy/latest/api-v3/type/matcher/v3/string.proto.
// Extensions match nothing.
func matchString(m *matcherv3.StringMatcher, s string) bool {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return fold(p.Exact) == fold(s)
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(fold(s), fold(p.Prefix))
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(fold(s), fold(p.Suffix))
	case *matcherv3.StringMatcher_Contains:
		return strings.Contains(fold(s), fold(p.Contains))
	case *matcherv3.StringMatcher_SafeRegex:
		return matchRegex(p.SafeRegex.GetRegex(), s)
	}
	return false
}

// matchRegex matches the whole text. Go's syntax is Envoy's (RE2).
func matchRegex(expression, s string) bool {
	re, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	return err == nil && re.MatchString(s)
}

// matchHeader matches the values of a header, joined by commas; there is none if has isn't set. A
// header that is missing matches nothing, inverted or not, unless it counts as empty or its
// presence is what is asked for.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-headermatcher
func matchHeader(m *routev3.HeaderMatcher, value string, has bool) bool {
	switch p := m.GetHeaderMatchSpecifier().(type) {
	case nil:
		return has != m.InvertMatch
	case *routev3.HeaderMatcher_PresentMatch:
		return (has || m.TreatMissingHeaderAsEmpty) == p.PresentMatch != m.InvertMatch
	}
	if !has && !m.TreatMissingHeaderAsEmpty {
		return false
	}
	return matchHeaderValue(m, value) != m.InvertMatch
}

// metadata are filters' values by their names, as in JSON.
type metadata map[string]map[string]any

func (m metadata) put(filter, key string, value any) {
	if m[filter] == nil {
		m[filter] = map[string]any{}
	}
	m[filter][key] = value
}

// matches: https://www.envoyproxy.io/docs/envoy/latest/api-v3/type/matcher/v3/metadata.proto
func (m metadata) matches(want *matcherv3.MetadataMatcher) bool {
	var at any = m[want.GetFilter()]
	for _, p := range want.GetPath() {
		fields, ok := at.(map[string]any)
		if !ok {
			at = nil
			break
		}
		at = fields[p.GetKey()]
	}
	return matchValue(want.GetValue(), at) != want.GetInvert()
}

// matchValue: https://www.envoyproxy.io/docs/envoy/latest/api-v3/type/matcher/v3/value.proto
func matchValue(m *matcherv3.ValueMatcher, v any) bool {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.ValueMatcher_NullMatch_:
		return v == nil
	case *matcherv3.ValueMatcher_PresentMatch:
		return (v != nil) == p.PresentMatch
	case *matcherv3.ValueMatcher_StringMatch:
		s, ok := v.(string)
		return ok && matchString(p.StringMatch, s)
	case *matcherv3.ValueMatcher_BoolMatch:
		return v == p.BoolMatch
	case *matcherv3.ValueMatcher_DoubleMatch:
		f, ok := v.(float64)
		r := p.DoubleMatch.GetRange()
		return ok && (f == p.DoubleMatch.GetExact() && r == nil || r != nil && r.Start <= f && f < r.End)
	case *matcherv3.ValueMatcher_ListMatch:
		list, ok := v.([]any)
		return ok && some(list, func(v any) bool { return matchValue(p.ListMatch.GetOneOf(), v) })
	case *matcherv3.ValueMatcher_OrMatch:
		return some(p.OrMatch.ValueMatchers, func(m *matcherv3.ValueMatcher) bool { return matchValue(m, v) })
	}
	return false
}

// text of a value as it stands in a header.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i])
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}
