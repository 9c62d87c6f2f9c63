package authn

import (
	"strings"

	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// TokenFilter checks tokens, and leaves what they hold in metadata under payload.
const (
	TokenFilter = "envoy.filters.http.jwt_authn"
	payload     = "payload"
)

// Claim asks whether a claim of the request's token is a value, or a list with one. A claim inside
// of others is named by its path.
func Claim(value *matcher.ValueMatcher, path ...string) *matcher.MetadataMatcher {
	element := &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_ListMatch{ListMatch: &matcher.ListMatcher{
		MatchPattern: &matcher.ListMatcher_OneOf{OneOf: value},
	}}}
	return Payload(&matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_OrMatch{OrMatch: &matcher.OrMatcher{
		ValueMatchers: []*matcher.ValueMatcher{element, value},
	}}}, path...)
}

// Payload asks for a claim that is no list.
func Payload(value *matcher.ValueMatcher, path ...string) *matcher.MetadataMatcher {
	out := &matcher.MetadataMatcher{Filter: TokenFilter, Value: value}
	for _, p := range append([]string{payload}, path...) {
		out.Path = append(out.Path, &matcher.MetadataMatcher_PathSegment{Segment: &matcher.MetadataMatcher_PathSegment_Key{Key: p}})
	}
	return out
}

// claims starts names of headers in matches that mean claims of the token.
const claims = "@request.auth.claims"

// HeaderClaim is the path of the claim that a header in a match means: @request.auth.claims.NAME,
// or with [NAME] for each step, whose names may have dots. It is nil for headers.
func HeaderClaim(header string) []string {
	if len(header) < len(claims) || !strings.EqualFold(header[:len(claims)], claims) {
		return nil
	}
	rest := header[len(claims):]
	if path, ok := strings.CutPrefix(rest, "."); ok && path != "" {
		return strings.Split(path, ".")
	}
	return Brackets(rest)
}

// Brackets reads [a][b]; nil where it isn't that.
func Brackets(s string) []string {
	inner, ok := strings.CutPrefix(s, "[")
	if !ok {
		return nil
	}
	inner, ok = strings.CutSuffix(inner, "]")
	if !ok || inner == "" {
		return nil
	}
	return strings.Split(inner, "][")
}
