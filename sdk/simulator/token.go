package simulator

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
)

// token is a JWT (RFC 7519) whose signature nobody has checked.
type token struct {
	header, claims map[string]any
	// payload is as it stands in the token.
	payload string
}

// parse reads a token, and says what is wrong with its form.
func parse(text string) (t token, fault string) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t, malformed
	}
	t.payload = parts[1]
	if fault = decode("header", parts[0], &t.header); fault == "" {
		fault = decode("payload", parts[1], &t.claims)
	}
	return t, fault
}

func decode(what, part string, into any) (fault string) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	if err != nil {
		return "Jwt " + what + " is an invalid Base64url encoded"
	}
	if json.Unmarshal(b, into) != nil {
		return "Jwt " + what + " is an invalid JSON"
	}
	return ""
}

// fault says what a provider doesn't like about it.
func (t token) fault(p *jwtv3.JwtProvider, audiences []string, at time.Time) string {
	skew := time.Duration(p.ClockSkewSeconds) * time.Second
	if skew == 0 {
		skew = time.Minute
	}
	issuer, _ := t.claims["iss"].(string)
	switch {
	case p.Issuer != "" && issuer != p.Issuer:
		return unknownIssuer
	case p.Subjects != nil && !t.subject(p):
		return wrongSubject
	case len(audiences) > 0 && !some(t.audiences(), func(a string) bool { return slices.Contains(audiences, a) }):
		return wrongAudience
	case at.IsZero():
		return ""
	}
	if from, ok := t.time("nbf"); ok && at.Add(skew).Before(from) {
		return tooEarly
	}
	if until, ok := t.time("exp"); ok && at.After(until.Add(skew)) {
		return expired
	}
	return ""
}

func (t token) subject(p *jwtv3.JwtProvider) bool {
	s, ok := t.claims["sub"].(string)
	return ok && matchString(p.Subjects, s)
}

func (t token) time(claim string) (time.Time, bool) {
	n, ok := t.claims[claim].(float64)
	return time.Unix(int64(n), 0), ok
}

func (t token) audiences() (all []string) {
	switch v := t.claims["aud"].(type) {
	case string:
		return []string{v}
	case []any:
		for _, a := range v {
			all = append(all, text(a))
		}
	}
	return all
}

// normalized has some claims as lists of what stands between spaces.
func (t token) normalized(spaced []string) map[string]any {
	all := map[string]any{}
	for name, v := range t.claims {
		if s, ok := v.(string); ok && slices.Contains(spaced, name) {
			list := []any{}
			for _, word := range strings.Fields(s) {
				list = append(list, word)
			}
			v = list
		}
		all[name] = v
	}
	return all
}

// claim is what goes into a header.
func (t token) claim(h *jwtv3.JwtClaimToHeader) any {
	path := strings.Split(h.ClaimName, ".")
	if len(h.ClaimPath) > 0 {
		path = nil
		for _, s := range h.ClaimPath {
			path = append(path, s.GetKey())
		}
	}
	var at any = t.claims
	for _, key := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = fields[key]
	}
	return at
}

// places are the headers and parameters where a provider looks: Authorization and access_token if
// it names no other place.
func places(p *jwtv3.JwtProvider) (headers []*jwtv3.JwtHeader, params []string) {
	if len(p.FromHeaders) == 0 && len(p.FromParams) == 0 && len(p.FromCookies) == 0 {
		return []*jwtv3.JwtHeader{{Name: "Authorization", ValuePrefix: "Bearer "}}, []string{"access_token"}
	}
	return p.FromHeaders, p.FromParams
}

// tokens are those that stand where a provider looks.
func (c *check) tokens(p *jwtv3.JwtProvider) (found []string) {
	headers, params := places(p)
	for _, h := range headers {
		value, ok := c.stream.header(h.Name)
		if _, after, has := strings.Cut(value, h.ValuePrefix); ok && has {
			found = append(found, strings.TrimSpace(after))
		}
	}
	for _, name := range params {
		for _, value := range c.stream.query()[name] {
			if plain, err := url.PathUnescape(value); err == nil {
				found = append(found, plain)
			}
		}
	}
	for _, name := range p.FromCookies {
		if value, ok := c.stream.cookie(name); ok {
			found = append(found, value)
		}
	}
	return found
}

// strip takes a token off the request, where it stands in a header or a parameter.
func (c *check) strip(p *jwtv3.JwtProvider) {
	headers, params := places(p)
	for _, h := range headers {
		c.stream.Header.Del(h.Name)
	}
	for _, name := range params {
		c.stream.dropParameter(name)
	}
}

func (s *stream) dropParameter(name string) {
	path, query, has := strings.Cut(s.Path, "?")
	if !has {
		return
	}
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		return key == name
	})
	s.Path = path
	if len(kept) > 0 {
		s.Path += "?" + strings.Join(kept, "&")
	}
}

func underscores(s string) string { return strings.ReplaceAll(s, " ", "_") }
