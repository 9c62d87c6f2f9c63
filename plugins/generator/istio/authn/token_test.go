package authn_test

import (
	"fmt"
	"testing"

	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets/usable"
)

func TestKeysComeFromTheRuleOrTheTable(t *testing.T) {
	const inline = `{"keys":[{"kty":"oct","k":"AQAB"}]}`
	table := map[string]string{"https://a.example/keys": "A", "https://b.example": "B"}
	keys := authn.Keys{Find: func(set string) (string, bool) { s, ok := table[set]; return s, ok }}
	for _, c := range []struct {
		name string
		rule *security.JWTRule
		want string
	}{
		{"inline", &security.JWTRule{Issuer: "i", Jwks: inline, JwksUri: "https://a.example/keys"}, inline},
		{"by URI", &security.JWTRule{Issuer: "i", JwksUri: "https://a.example/keys"}, "A"},
		{"discovered", &security.JWTRule{Issuer: "https://b.example"}, "B"},
		{"not there: no token fits", &security.JWTRule{Issuer: "i", JwksUri: "https://c.example"}, usable.Nobodys},
		{"inline without keys", &security.JWTRule{Issuer: "i", Jwks: `{"keys":[]}`, JwksUri: "https://a.example/keys"}, usable.Nobodys},
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

func TestProxiesFetchKeys(t *testing.T) {
	cluster := func(host string, port uint32) (string, bool) {
		return fmt.Sprintf("%s-%d", host, port), host == "known"
	}
	for _, c := range []struct {
		by    authn.Fetch
		rule  *security.JWTRule
		want  string
		local bool
	}{
		{by: "", rule: &security.JWTRule{JwksUri: "http://known/k"}, local: true},
		{by: authn.FetchHere, rule: &security.JWTRule{JwksUri: "http://known/k"}, local: true},
		{by: authn.FetchHybrid, rule: &security.JWTRule{JwksUri: "http://known/k"}, want: "known-80"},
		{by: authn.FetchHybrid, rule: &security.JWTRule{JwksUri: "https://known:444/k"}, want: "known-444"},
		{by: authn.FetchHybrid, rule: &security.JWTRule{JwksUri: "https://other/k"}, local: true},
		{by: authn.FetchProxy, rule: &security.JWTRule{JwksUri: "https://other/k"}, want: "other-443"},
		{by: authn.FetchProxy, rule: &security.JWTRule{JwksUri: "https://other/k", Jwks: "{}"}, local: true},
		{by: authn.FetchProxy, rule: &security.JWTRule{Issuer: "https://other"}, local: true},
		{by: authn.FetchProxy, rule: &security.JWTRule{JwksUri: "ftp://known/k"}, local: true},
	} {
		keys := authn.Keys{By: c.by, Cluster: cluster, Find: func(string) (string, bool) { return "", false }}
		p := authn.Tokens([]*security.JWTRule{c.rule}, keys, false).Providers["origins-0"]
		remote := p.GetRemoteJwks().GetHttpUri()
		if (p.GetLocalJwks() != nil) != c.local || remote.GetCluster() != c.want || remote.GetUri() != "" && remote.GetUri() != c.rule.JwksUri {
			t.Errorf("%s %v: %v", c.by, c.rule, p)
		}
		if err := p.ValidateAll(); c.want != "" && err != nil {
			t.Errorf("Envoy would refuse it: %v", err)
		}
	}
}
