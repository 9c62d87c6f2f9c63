package authn

import (
	"cmp"
	"fmt"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/types/known/emptypb"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets/usable"
)

// KeySet is where the keys of a rule that has none inline are: the key of a row in the table of key
// sets. That is the rule's jwksUri, or the issuer where a set is to be discovered.
func KeySet(r *security.JWTRule) string { return cmp.Or(r.JwksUri, r.Issuer) }

// Tokens makes the filter that checks tokens, nil without rules. A request without a token passes;
// one with a token that no rule takes doesn't. routed: routes may ask for claims, and are chosen
// again when they are known.
func Tokens(rules []*security.JWTRule, keys Keys, routed bool) *jwt.JwtAuthentication {
	if len(rules) == 0 {
		return nil
	}
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b *security.JWTRule) int { return cmp.Compare(a.Issuer, b.Issuer) })
	out := &jwt.JwtAuthentication{Providers: map[string]*jwt.JwtProvider{}, BypassCorsPreflight: true}
	var names []string
	for i, r := range rules {
		name := fmt.Sprintf("origins-%d", i)
		p := provider(r, keys)
		p.ClearRouteCache = routed
		out.Providers[name] = p
		names = append(names, name)
	}
	out.Rules = []*jwt.RequirementRule{{
		Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		RequirementType: &jwt.RequirementRule_Requires{Requires: require(names)},
	}}
	return out
}

func provider(r *security.JWTRule, keys Keys) *jwt.JwtProvider {
	out := &jwt.JwtProvider{
		Issuer:               r.Issuer,
		Audiences:            r.Audiences,
		Forward:              r.ForwardOriginalToken,
		ForwardPayloadHeader: r.OutputPayloadToHeader,
		PayloadInMetadata:    payload,
		FromParams:           r.FromParams,
		FromCookies:          r.FromCookies,
		NormalizePayloadInMetadata: &jwt.JwtProvider_NormalizePayload{
			SpaceDelimitedClaims: spaceDelimited(r.SpaceDelimitedClaims),
		},
	}
	if remote := keys.remote(r); remote != nil {
		out.JwksSourceSpecifier = &jwt.JwtProvider_RemoteJwks{RemoteJwks: remote}
	} else {
		out.JwksSourceSpecifier = &jwt.JwtProvider_LocalJwks{LocalJwks: keySet(r, keys)}
	}
	for _, h := range r.FromHeaders {
		out.FromHeaders = append(out.FromHeaders, &jwt.JwtHeader{Name: h.Name, ValuePrefix: h.Prefix})
	}
	for _, c := range r.OutputClaimToHeaders {
		out.ClaimToHeaders = append(out.ClaimToHeaders, &jwt.JwtClaimToHeader{HeaderName: c.Header, ClaimName: c.Claim})
	}
	return out
}

// keySet is the set that the rule has inline, or that was fetched for it. Where there is none that
// Envoy takes it is one that no token fits: requests that carry one are refused, and nothing else.
// Envoy would refuse the listener otherwise, with each policy in it.
func keySet(r *security.JWTRule, keys Keys) *core.DataSource {
	text, ok := r.Jwks, r.Jwks != "" && usable.Check(r.Jwks) == nil
	if r.Jwks == "" {
		text, ok = keys.Find(KeySet(r))
	}
	if !ok {
		text = usable.Nobodys
	}
	return &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: text}}
}

// spaceDelimited are the claims whose words count one by one: those of OAuth, and more.
func spaceDelimited(more []string) []string {
	out := append([]string{"permission", "scope"}, more...)
	slices.Sort(out)
	return slices.Compact(out)
}

// require takes a request if a provider takes its token, or if each takes it or finds none:
// providers may look in different places, and in the same.
func require(names []string) *jwt.JwtRequirement {
	var each, any []*jwt.JwtRequirement
	for _, n := range names {
		named := &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_ProviderName{ProviderName: n}}
		missing := &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
		each = append(each, anyOf(named, missing))
		any = append(any, named)
	}
	if len(each) == 1 {
		return each[0]
	}
	all := &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_RequiresAll{RequiresAll: &jwt.JwtRequirementAndList{Requirements: each}}}
	return anyOf(append(any, all)...)
}

func anyOf(list ...*jwt.JwtRequirement) *jwt.JwtRequirement {
	return &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_RequiresAny{RequiresAny: &jwt.JwtRequirementOrList{Requirements: list}}}
}
