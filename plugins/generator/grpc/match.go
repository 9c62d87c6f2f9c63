package grpc

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// most are the headers that a match may ask to be missing: each doubles the routes.
const most = 4

// matches are a match as gRPC reads it: the path, which is /SERVICE/METHOD, and headers. There are
// several where headers are to be missing or to have another value: of a header that is missing
// gRPC says that it matches nothing, also where the match is turned round. There is none where
// too many are asked for: what can't be said matches nothing.
func matches(m *networking.HTTPMatchRequest) []*routev3.RouteMatch {
	if len(m.GetWithoutHeaders()) > most {
		return nil
	}
	out := []*routev3.RouteMatch{present(m)}
	for _, name := range slices.Sorted(maps.Keys(m.GetWithoutHeaders())) {
		out = without(out, name, m.WithoutHeaders[name])
	}
	return out
}

// present is what a match asks of what a call has.
func present(m *networking.HTTPMatchRequest) *routev3.RouteMatch {
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
	return out
}

// without are matches to which is added that a header is missing, or has another value.
func without(all []*routev3.RouteMatch, name string, m *networking.StringMatch) []*routev3.RouteMatch {
	wanted := []*routev3.HeaderMatcher{header(name, nil)}
	if other := header(name, m); !other.GetPresentMatch() {
		wanted = append(wanted, other)
	}
	var out []*routev3.RouteMatch
	for _, each := range all {
		for _, h := range wanted {
			one := proto.CloneOf(each)
			h.InvertMatch = true
			one.Headers = append(one.Headers, h)
			out = append(out, one)
		}
	}
	return out
}

// says reports whether a string is what a match asks for.
func says(m *networking.StringMatch, value string) bool {
	switch v := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return v.Exact == value
	case *networking.StringMatch_Prefix:
		return strings.HasPrefix(value, v.Prefix)
	case *networking.StringMatch_Regex:
		if v.Regex == "*" {
			return true
		}
		whole, err := regexp.Compile("^(?:" + v.Regex + ")$")
		return err == nil && whole.MatchString(value)
	}
	return true
}

// header without a value, or with Istio's word for any (the expression *), matches where there is
// one of the name.
func header(name string, m *networking.StringMatch) *routev3.HeaderMatcher {
	if m.GetRegex() == "*" {
		m = nil
	}
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
