package authn_test

import (
	"testing"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
)

func TestKeysComeFromTheRuleOrTheTable(t *testing.T) {
	table := map[string]string{"https://a.example/keys": "A", "https://b.example": "B"}
	keys := func(set string) (string, bool) { s, ok := table[set]; return s, ok }
	for _, c := range []struct {
		name string
		rule *security.JWTRule
		want string
	}{
		{"inline", &security.JWTRule{Issuer: "i", Jwks: "inline", JwksUri: "https://a.example/keys"}, "inline"},
		{"by URI", &security.JWTRule{Issuer: "i", JwksUri: "https://a.example/keys"}, "A"},
		{"discovered", &security.JWTRule{Issuer: "https://b.example"}, "B"},
		{"not there: no token fits", &security.JWTRule{Issuer: "i", JwksUri: "https://c.example"}, `{"keys":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := authn.Tokens([]*security.JWTRule{c.rule}, keys, false)
			if s := got.Providers["origins-0"].GetLocalJwks().GetInlineString(); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
	if authn.Tokens(nil, keys, false) != nil {
		t.Error("a filter without rules")
	}
}
