package simulator

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// authenticate checks tokens, but for their signatures, and leaves what they say in metadata and
// headers.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/jwt_authn_filter
func (w *walk) authenticate(name string, f *jwtv3.JwtAuthentication) {
	if f.BypassCorsPreflight && w.stream.preflight() {
		w.step("filter", name, "browsers may ask without a token")
		return
	}
	requirement := w.requirement(name, f)
	if requirement == nil {
		return
	}
	c := &check{walk: w, name: name, providers: f.Providers}
	if fault := c.meets(requirement, nil); fault != "" {
		status := http.StatusUnauthorized
		if fault == wrongAudience {
			status = http.StatusForbidden
		}
		w.answer(status, fault, "jwt_authn_access_denied{"+underscores(fault)+"}", "filter %s: %s", name, fault)
		return
	}
	for _, p := range c.forget {
		c.strip(p)
	}
	if c.anew {
		w.step("filter", name, "the route is chosen anew")
		w.resolve()
	}
}

// requirement is what the route asks for, or the first rule that matches; nil: nothing.
func (w *walk) requirement(name string, f *jwtv3.JwtAuthentication) *jwtv3.JwtRequirement {
	var route jwtv3.PerRouteConfig
	if w.perRoute(name, &route) {
		return f.RequirementMap[route.GetRequirementName()]
	}
	for _, rule := range f.Rules {
		if _, ok := w.matches(cmp.Or(rule.Match, &routev3.RouteMatch{})); ok {
			return cmp.Or(rule.GetRequires(), f.RequirementMap[rule.GetRequirementName()])
		}
	}
	if f.FilterStateRules != nil {
		w.assume("filter state asks for no token")
	}
	return nil
}

// What Envoy says of tokens.
const (
	missing       = "Jwt is missing"
	malformed     = "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections"
	unknownIssuer = "Jwt issuer is not configured"
	expired       = "Jwt is expired"
	tooEarly      = "Jwt not yet valid"
	wrongAudience = "Audiences in Jwt are not allowed"
	wrongSubject  = "Jwt subject is not allowed"
)

// check is one request's tokens against requirements.
type check struct {
	*walk
	name      string
	providers map[string]*jwtv3.JwtProvider
	// anew: a token that counts may change the route. forget are the providers whose tokens are
	// taken off the request.
	anew   bool
	forget []*jwtv3.JwtProvider
}

// meets returns what is wrong with the tokens; audiences take the place of a provider's own, if
// there are any.
func (c *check) meets(r *jwtv3.JwtRequirement, audiences []string) (fault string) {
	switch kind := r.GetRequiresType().(type) {
	case *jwtv3.JwtRequirement_ProviderName:
		return c.provider(kind.ProviderName, audiences)
	case *jwtv3.JwtRequirement_ProviderAndAudiences:
		return c.provider(kind.ProviderAndAudiences.ProviderName, kind.ProviderAndAudiences.Audiences)
	case *jwtv3.JwtRequirement_RequiresAll:
		for _, each := range kind.RequiresAll.Requirements {
			if fault := c.meets(each, audiences); fault != "" {
				return fault
			}
		}
	case *jwtv3.JwtRequirement_RequiresAny:
		return c.meetsAny(kind.RequiresAny.Requirements, audiences)
	case *jwtv3.JwtRequirement_AllowMissing:
		return c.allowMissing()
	case *jwtv3.JwtRequirement_ExtractOnlyWithoutValidation, *jwtv3.JwtRequirement_AllowMissingOrFailed:
		c.tryAll()
	}
	return ""
}

func (c *check) meetsAny(list []*jwtv3.JwtRequirement, audiences []string) (fault string) {
	for _, each := range list {
		each := c.meets(each, audiences)
		if each == "" {
			return ""
		}
		if fault == "" || fault == missing || fault == unknownIssuer && each != missing {
			fault = each
		}
	}
	return fault
}

// allowMissing: no token will do, and so will one that a provider takes.
func (c *check) allowMissing() (fault string) {
	fault = missing
	for _, name := range slices.Sorted(maps.Keys(c.providers)) {
		each := c.provider(name, nil)
		if each == "" {
			return ""
		}
		if each != missing && (fault == missing || fault == unknownIssuer) {
			fault = each
		}
	}
	if fault == missing {
		return ""
	}
	return fault
}

func (c *check) tryAll() {
	for _, name := range slices.Sorted(maps.Keys(c.providers)) {
		_ = c.provider(name, nil) // what fails is let through as well
	}
}

// provider checks the tokens that stand where a provider looks for them.
func (c *check) provider(name string, audiences []string) (fault string) {
	p := c.providers[name]
	if p == nil {
		return unknownIssuer
	}
	if audiences == nil {
		audiences = p.Audiences
	}
	found := c.tokens(p)
	if len(found) == 0 {
		return missing
	}
	for _, text := range found {
		t, fault := parse(text)
		if fault != "" {
			return fault
		}
		if fault := t.fault(p, audiences, c.stream.At); fault != "" {
			return fault
		}
		c.accept(name, p, t)
	}
	return ""
}

func (c *check) accept(name string, p *jwtv3.JwtProvider, t token) {
	c.step("filter", c.name, "a token of %q that provider %s takes", t.claims["iss"], name)
	c.assume("the token's signature is good")
	if p.PayloadInMetadata != "" {
		c.stream.metadata.put(c.name, p.PayloadInMetadata, t.normalized(p.GetNormalizePayloadInMetadata().GetSpaceDelimitedClaims()))
	}
	if p.HeaderInMetadata != "" {
		c.stream.metadata.put(c.name, p.HeaderInMetadata, t.header)
	}
	if p.ForwardPayloadHeader != "" {
		c.stream.Header.Set(p.ForwardPayloadHeader, t.payload)
	}
	for _, h := range p.ClaimToHeaders {
		if v := t.claim(h); v != nil {
			c.stream.Header.Set(h.HeaderName, text(v))
		}
	}
	c.anew = c.anew || p.ClearRouteCache
	if !p.Forward {
		c.forget = append(c.forget, p)
	}
}
