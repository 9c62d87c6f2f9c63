package rules

import (
	"encoding/json"
	"net/url"

	security "istio.io/api/security/v1beta1"
)

const (
	badJWTRule = "COX2611"
	badJWKS    = "COX2612"
)

func (c *checker) requestAuthentication(at path, r *security.RequestAuthentication) {
	c.selection(at, r.Selector, r.TargetRef, r.TargetRefs)
	if _, ok := c.Annotations[dryRun]; ok {
		c.fail(badDryRun, path("metadata.annotations").key(dryRun), "dry-run is not supported for RequestAuthentication").hint("it is for AuthorizationPolicy")
	}
	for i, rule := range r.JwtRules {
		c.jwtRule(at.field("jwtRules").index(i), rule)
	}
}

func (c *checker) jwtRule(at path, r *security.JWTRule) {
	if r.GetIssuer() == "" && r.GetJwksUri() == "" {
		c.fail(badJWTRule, at.field("issuer"), "issuer or jwksUri must be set")
	}
	if r.GetJwks() != "" && r.GetJwksUri() != "" {
		c.fail(badJWKS, at, "only one of jwks or jwksUri can be set")
	}
	if r.GetJwksUri() != "" {
		c.keysAddress(at.field("jwksUri"), r.JwksUri)
	}
	if r.GetJwks() != "" {
		c.keys(at.field("jwks"), r.Jwks)
	}
	for i, h := range r.GetFromHeaders() {
		c.headerName(at.field("fromHeaders").index(i).field("name"), h.GetName())
	}
	for _, v := range []values{{"audiences", r.GetAudiences()}, {"fromParams", r.GetFromParams()}, {"fromCookies", r.GetFromCookies()}} {
		for i, each := range v.list {
			if each == "" {
				c.fail(emptyValue, at.field(v.field).index(i), "%s must not have empty values", v.field)
			}
		}
	}
	if r.GetOutputPayloadToHeader() != "" {
		c.headerName(at.field("outputPayloadToHeader"), r.OutputPayloadToHeader)
	}
	for i, each := range r.GetOutputClaimToHeaders() {
		here := at.field("outputClaimToHeaders").index(i)
		c.headerName(here.field("header"), each.GetHeader())
		if each.GetClaim() == "" {
			c.fail(emptyValue, here.field("claim"), "claim must not be empty")
		}
	}
	c.duration(at.field("timeout"), r.GetTimeout(), false)
}

// keysAddress checks where keys are fetched from.
func (c *checker) keysAddress(at path, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		c.fail(badJWKS, at, "jwksUri %s is no URL: %v", quote(text), err)
	case u.Scheme != "http" && u.Scheme != "https":
		c.fail(badJWKS, at, "URI scheme %s is not supported: url must have scheme http:// or https://", quote(u.Scheme))
	case u.Host == "":
		c.fail(badJWKS, at, "jwksUri %s has no host", quote(text))
	}
}

// keys checks a key set that is written into the rule. Source: RFC 7517 4 and 5.
func (c *checker) keys(at path, text string) {
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		c.fail(badJWKS, at, "parse jwks: %v", err).hint(`write {"keys": […]} as RFC 7517 has it`)
		return
	}
	for i, k := range set.Keys {
		if k.Type == "" {
			c.fail(badJWKS, at, "parse jwks: key %d has no type (kty)", i)
		}
	}
	if len(set.Keys) == 0 {
		c.warn(badJWKS, at, "the key set has no keys: no token will be valid")
	}
}
