package grpc

import (
	"maps"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// match is a match as gRPC reads it: the path, which is /SERVICE/METHOD, and headers.
func match(m *networking.HTTPMatchRequest) *routev3.RouteMatch {
	out := everything()
	switch u := m.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: u.Exact}
	case *networking.StringMatch_Prefix:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: u.Prefix}
	case *networking.StringMatch_Regex:
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: regex(u.Regex)}
	}
	if m.GetIgnoreUriCase() && m.GetUri().GetRegex() == "" {
		out.CaseSensitive = wrapperspb.Bool(false)
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		out.Headers = append(out.Headers, header(name, m.Headers[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		h := header(name, m.WithoutHeaders[name])
		h.InvertMatch = true
		out.Headers = append(out.Headers, h)
	}
	return out
}

// header without a value matches where there is one of the name.
func header(name string, m *networking.StringMatch) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: name}
	var text *matcherv3.StringMatcher
	switch v := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		text = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: v.Exact}}
	case *networking.StringMatch_Prefix:
		text = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: v.Prefix}}
	case *networking.StringMatch_Regex:
		text = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(v.Regex)}}
	default:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
		return out
	}
	out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: text}
	return out
}

func regex(s string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: s} }
