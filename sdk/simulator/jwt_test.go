package simulator

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

func signed(claims string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"RS256"}`) + "." + part(claims) + ".c2ln"
}

// TestTokens: what two providers, a and b, say of a token where a rule requires what stands here.
func TestTokens(t *testing.T) {
	const optional = `{"requiresAny": {"requirements": [{"providerName": "a"}, {"allowMissing": {}}]}}`
	for name, c := range map[string]struct {
		requires, token string
		status          int
		body            string
	}{
		"none where one must be":  {`{"providerName": "a"}`, "", 401, missing},
		"none where none must be": {optional, "", 0, ""},
		"a good one":              {`{"providerName": "a"}`, signed(`{"iss": "a", "aud": ["x", "y"]}`), 0, ""},
		"another's":               {`{"providerName": "b"}`, signed(`{"iss": "a"}`), 401, unknownIssuer},
		"another's, where all do": {
			`{"requiresAll": {"requirements": [{"providerName": "a"}, {"providerName": "b"}]}}`,
			signed(`{"iss": "a", "aud": "x"}`), 401, unknownIssuer,
		},
		"either's":                     {`{"requiresAny": {"requirements": [{"providerName": "a"}, {"providerName": "b"}]}}`, signed(`{"iss": "b"}`), 0, ""},
		"a stranger's":                 {optional, signed(`{"iss": "c"}`), 401, unknownIssuer},
		"no token at all":              {optional, "x.y", 401, malformed},
		"for others":                   {optional, signed(`{"iss": "a", "aud": "z"}`), 403, wrongAudience},
		"for those that the rule says": {`{"providerAndAudiences": {"providerName": "a", "audiences": ["z"]}}`, signed(`{"iss": "a", "aud": "z"}`), 0, ""},
		"too old":                      {`{"providerName": "b"}`, signed(`{"iss": "b", "exp": 1000}`), 401, expired},
		"too new":                      {`{"providerName": "b"}`, signed(`{"iss": "b", "nbf": 3000}`), 401, tooEarly},
		"a little too old":             {`{"providerName": "b"}`, signed(`{"iss": "b", "exp": 1990}`), 0, ""},
		"bad ones are let through":     {`{"allowMissingOrFailed": {}}`, "x", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &jwtv3.JwtAuthentication{}
			text := `{"providers": {"a": {"issuer": "a", "audiences": ["x"], "payloadInMetadata": "payload"}, "b": ` +
				`{"issuer": "b"}}, "rules": [{"match": {"prefix": "/"}, "requires": ` + c.requires + `}]}`
			if err := protojson.Unmarshal([]byte(text), f); err != nil {
				t.Fatal(err)
			}
			r := Request{Header: http.Header{}, At: time.Unix(2000, 0)}
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			w := &walk{Config: &Config{}, out: &Outcome{}, stream: newStream(r, Connection{})}
			w.authenticate("jwt", f)
			if w.out.Answer.Status != c.status || w.out.Answer.Body != c.body {
				t.Errorf("%d %q, want %d %q", w.out.Answer.Status, w.out.Answer.Body, c.status, c.body)
			}
		})
	}
}
