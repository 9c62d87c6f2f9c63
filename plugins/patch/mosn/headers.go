package mosn

import (
	"regexp"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
)

// headers writes the header matches of routes in the fields that MOSN reads, exact_match and
// safe_regex_match, which Envoy has deprecated for string_match. MOSN passes what it can't read by,
// so that the route would match any request.
func headers(c *routev3.RouteConfiguration) {
	for _, h := range c.GetVirtualHosts() {
		for _, r := range h.Routes {
			for _, m := range r.GetMatch().GetHeaders() {
				header(m)
			}
		}
	}
}

func header(m *routev3.HeaderMatcher) {
	switch is := m.HeaderMatchSpecifier.(type) {
	case *routev3.HeaderMatcher_StringMatch:
		text := is.StringMatch
		if exact, ok := text.MatchPattern.(*matcherv3.StringMatcher_Exact); ok && !text.IgnoreCase {
			m.HeaderMatchSpecifier = &routev3.HeaderMatcher_ExactMatch{ExactMatch: exact.Exact}
		} else if expression := expressionOf(text); expression != "" {
			m.HeaderMatchSpecifier = matches(expression)
		}
	case *routev3.HeaderMatcher_PresentMatch:
		if is.PresentMatch {
			m.HeaderMatchSpecifier = matches("^.*$")
		}
	}
}

func matches(expression string) *routev3.HeaderMatcher_SafeRegexMatch {
	return &routev3.HeaderMatcher_SafeRegexMatch{SafeRegexMatch: &matcherv3.RegexMatcher{Regex: expression}}
}

// expressionOf returns a regular expression (RE2) for the whole of what a matcher takes; empty:
// there is none.
func expressionOf(m *matcherv3.StringMatcher) string {
	expression := ""
	switch is := m.MatchPattern.(type) {
	case *matcherv3.StringMatcher_Exact:
		expression = regexp.QuoteMeta(is.Exact)
	case *matcherv3.StringMatcher_Prefix:
		expression = regexp.QuoteMeta(is.Prefix) + ".*"
	case *matcherv3.StringMatcher_Suffix:
		expression = ".*" + regexp.QuoteMeta(is.Suffix)
	case *matcherv3.StringMatcher_Contains:
		expression = ".*" + regexp.QuoteMeta(is.Contains) + ".*"
	case *matcherv3.StringMatcher_SafeRegex:
		expression = "(?:" + is.SafeRegex.GetRegex() + ")"
	default:
		return ""
	}
	if m.IgnoreCase {
		expression = "(?i)" + expression
	}
	return "^" + expression + "$"
}

// inlined does what headers does for the routes that a listener has in it.
func inlined(l *listenerv3.Listener) error {
	chains := l.FilterChains
	if l.DefaultFilterChain != nil {
		chains = append(chains[:len(chains):len(chains)], l.DefaultFilterChain)
	}
	for _, chain := range chains {
		for _, f := range chain.Filters {
			if !f.GetTypedConfig().MessageIs((*hcmv3.HttpConnectionManager)(nil)) {
				continue
			}
			var m hcmv3.HttpConnectionManager
			if err := f.GetTypedConfig().UnmarshalTo(&m); err != nil {
				return err
			}
			before := proto.CloneOf(&m)
			headers(m.GetRouteConfig())
			if proto.Equal(before, &m) {
				continue
			}
			value, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
			if err != nil {
				return err
			}
			f.GetTypedConfig().Value = value
		}
	}
	return nil
}
