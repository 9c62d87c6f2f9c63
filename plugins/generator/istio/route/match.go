package route

import (
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// match translates a request match; nil matches everything. separated: what a prefix ends with is
// followed by a slash, or by nothing.
func match(in *networking.HTTPMatchRequest, separated bool) *routev3.RouteMatch {
	out := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	if in == nil {
		return out
	}
	for _, name := range sortedKeys(in.Headers) {
		if c := claim(name, in.Headers[name], false); c != nil {
			out.DynamicMetadata = append(out.DynamicMetadata, c)
			continue
		}
		out.Headers = append(out.Headers, header(name, in.Headers[name]))
	}
	for _, name := range sortedKeys(in.WithoutHeaders) {
		if c := claim(name, in.WithoutHeaders[name], true); c != nil {
			out.DynamicMetadata = append(out.DynamicMetadata, c)
			continue
		}
		out.Headers = append(out.Headers, without(name, in.WithoutHeaders[name]))
	}
	for _, h := range []struct {
		name  string
		value *networking.StringMatch
	}{{":method", in.Method}, {":authority", in.Authority}, {":scheme", in.Scheme}} {
		if h.value != nil {
			out.Headers = append(out.Headers, header(h.name, h.value))
		}
	}
	for _, name := range sortedKeys(in.QueryParams) {
		out.QueryParameters = append(out.QueryParameters, queryParameter(name, in.QueryParams[name]))
	}
	setPath(out, in.Uri, separated)
	out.CaseSensitive = wrapperspb.Bool(!in.IgnoreUriCase)
	return out
}

func setPath(out *routev3.RouteMatch, uri *networking.StringMatch, separated bool) {
	switch m := uri.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: m.Exact}
	case *networking.StringMatch_Prefix:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: m.Prefix}
		if separated && m.Prefix != "/" {
			out.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: strings.TrimSuffix(m.Prefix, "/")}
		}
	case *networking.StringMatch_Regex:
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: m.Regex}}
	}
}

// anyValue reports whether a match asks only that there is a value.
func anyValue(m *networking.StringMatch) bool {
	return m.GetMatchType() == nil || m.GetRegex() == "*"
}

func header(name string, m *networking.StringMatch) *routev3.HeaderMatcher {
	if anyValue(m) {
		return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: text(m)}}
}

// without matches requests that lack the header, or have it with another value.
func without(name string, m *networking.StringMatch) *routev3.HeaderMatcher {
	out := header(name, m)
	out.InvertMatch = true
	out.TreatMissingHeaderAsEmpty = !anyValue(m)
	return out
}

func queryParameter(name string, m *networking.StringMatch) *routev3.QueryParameterMatcher {
	if anyValue(m) {
		return &routev3.QueryParameterMatcher{Name: name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routev3.QueryParameterMatcher{Name: name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{StringMatch: text(m)}}
}

func text(m *networking.StringMatch) *matcher.StringMatcher {
	switch m := m.GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: m.Prefix}}
	case *networking.StringMatch_Regex:
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: m.Regex}}}
	}
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: m.GetExact()}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
