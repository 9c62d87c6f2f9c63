package rules

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// claimPrefix begins the names of headers that are in truth claims of a JWT that was verified.
const claimPrefix = "@request.auth.claims"

func (c *checker) httpMatch(at path, m *networking.HTTPMatchRequest, b binding) {
	if m == nil {
		return
	}
	if _, prefix := m.Uri.GetMatchType().(*networking.StringMatch_Prefix); !prefix { // all paths begin with an empty one
		c.stringMatch(at.field("uri"), m.Uri)
	}
	c.stringMatch(at.field("scheme"), m.Scheme)
	c.stringMatch(at.field("method"), m.Method)
	c.stringMatch(at.field("authority"), m.Authority)
	c.matchedHeaders(at.field("headers"), m.Headers, false, b)
	c.matchedHeaders(at.field("withoutHeaders"), m.WithoutHeaders, true, b)
	for _, name := range sorted(m.QueryParams) {
		c.stringMatch(at.field("queryParams").key(name), m.QueryParams[name])
	}
	if m.Port != 0 {
		c.port(at.field("port"), m.Port)
	}
	c.labels(at.field("sourceLabels"), m.SourceLabels)
	c.gatewayNames(at.field("gateways"), m.Gateways)
	if m.SourceNamespace != "" && !isLabel(m.SourceNamespace) {
		c.fail(badMatch, at.field("sourceNamespace"), "sourceNamespace %s is invalid: it is no name of a namespace", quote(m.SourceNamespace))
	}
}

// matchedHeaders checks matches of headers. missing: requests are meant that lack one; there the
// expression * is none: it means any value, so that the header is to be absent.
// Source: Istio, pkg/config/validation/virtualservice.go.
func (c *checker) matchedHeaders(at path, of map[string]*networking.StringMatch, missing bool, b binding) {
	for _, name := range sorted(of) {
		here := at.key(name)
		if !missing || of[name].GetRegex() != "*" {
			c.stringMatch(here, of[name])
		}
		if !strings.HasPrefix(name, claimPrefix) {
			c.headerName(here, name)
			continue
		}
		c.claim(here, strings.TrimPrefix(name, claimPrefix), b)
	}
}

// claim checks the rest of a claim's name, .NAME or [NAME], and that a gateway is there to verify
// tokens.
func (c *checker) claim(at path, rest string, b binding) {
	if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") || len(rest) < 2 {
		c.fail(badClaimRule, at, "%s names no claim", quote(claimPrefix+rest)).hint("write @request.auth.claims.sub or @request.auth.claims[sub]")
	}
	if !b.gateways || b.mesh { // as Istio's webhook has it, of delegates, too
		c.fail(badClaimRule, at, "JWT claim based routing is only supported for gateway").
			hint("name gateways in spec.gateways, and mesh in a VirtualService of its own")
	}
}

// stringMatch checks a match that must say something.
func (c *checker) stringMatch(at path, m *networking.StringMatch) {
	switch t := m.GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		if t.Prefix == "" {
			c.fail(badMatch, at.field("prefix"), "prefix string match should not be empty").hint("leave the match out; an empty prefix matches all")
		}
	case *networking.StringMatch_Regex:
		if t.Regex == "" {
			c.fail(badMatch, at.field("regex"), "regex string match should not be empty").hint("leave the match out, or write .*")
			return
		}
		c.regex(at.field("regex"), t.Regex)
	}
}
