package route

import (
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
)

// claim asks for a claim of the request's token, where a header's name means one; nil for headers.
func claim(name string, m *networking.StringMatch, invert bool) *matcher.MetadataMatcher {
	path := authn.HeaderClaim(name)
	if path == nil {
		return nil
	}
	value := &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_StringMatch{StringMatch: text(m)}}
	out := authn.Claim(value, path...)
	if anyValue(m) {
		out = authn.Payload(&matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_PresentMatch{PresentMatch: true}}, path...)
	}
	out.Invert = invert
	return out
}
