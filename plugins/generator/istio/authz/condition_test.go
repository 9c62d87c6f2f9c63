package authz_test

import (
	"maps"
	"slices"
	"testing"

	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
)

// TestConditions are those that the fixtures lack.
func TestConditions(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"source.trustDomain", "corp.example", `{"authenticated": {"principalName": {"prefix": "spiffe://corp.example/"}}}`},
		{"source.trustDomain", "*.example", `{"authenticated": {"principalName": {"safeRegex": {"regex": "spiffe://[^/]*\\.example/.*"}}}}`},
		{
			"request.experimental.inline.headers[x-list]", "a.b",
			`{"header": {"name": "x-list", "safeRegexMatch": {"regex": "^a\\.b$|^a\\.b,.*|.*,a\\.b,.*|.*,a\\.b$"}}}`,
		},
		{
			"request.experimental.inline.headers[x-list]", "a*",
			`{"header": {"name": "x-list", "safeRegexMatch": {"regex": "^a.*$|^a.*,.*|.*,a.*,.*|.*,a.*$"}}}`,
		},
		{
			"request.experimental.inline.headers[x-list]", "*a",
			`{"header": {"name": "x-list", "safeRegexMatch": {"regex": "^.*a$|^.*a,.*|.*,.*a,.*|.*,.*a$"}}}`,
		},
		{"request.experimental.inline.headers[x-list]", "*", `{"header": {"name": "x-list", "presentMatch": true}}`},
	} {
		want := &rbac.Principal{}
		if err := protojson.Unmarshal([]byte(c.want), want); err != nil {
			t.Fatal(err)
		}
		spec := &security.AuthorizationPolicy{Rules: []*security.Rule{{When: []*security.Condition{{Key: c.key, Values: []string{c.value}}}}}}
		out := authz.BuildHTTP([]*authz.Policy{{Namespace: "a", Name: "p", Spec: spec}}, authz.Mesh{})
		r := &rbachttp.RBAC{}
		if err := out.Rest[0].GetTypedConfig().UnmarshalTo(r); err != nil {
			t.Fatal(err)
		}
		got := r.Rules.Policies["ns[a]-policy[p]-rule[0]"].GetPrincipals()[0].GetAndIds().GetIds()[0].GetOrIds().GetIds()[0]
		if !proto.Equal(got, want) {
			t.Errorf("%s %q: %v, want %v", c.key, c.value, got, want)
		}
	}
}

// TestPrincipalsWithSlashes: what may be an issuer and a subject in several ways is read in the
// strictest. A rule that denies matches each; one that allows matches what istiod's does, and
// excludes each.
func TestPrincipalsWithSlashes(t *testing.T) {
	const github = "https://token.ci.test/repo:org/app:ref:refs/heads/main"
	whole := map[string]string{"https://token.ci.test": "repo:org/app:ref:refs/heads/main", "https://token.ci.test/repo:org": "app:ref:refs/heads/main",
		"https://token.ci.test/repo:org/app:ref:refs": "heads/main", "https://token.ci.test/repo:org/app:ref:refs/heads": "main"}
	last := map[string]string{"https://token.ci.test/repo:org/app:ref:refs/heads": "main"}
	for _, c := range []struct {
		action security.AuthorizationPolicy_Action
		not    bool
		value  string
		want   map[string]string
	}{
		{security.AuthorizationPolicy_DENY, false, github, whole},
		{security.AuthorizationPolicy_DENY, true, github, last},
		{security.AuthorizationPolicy_ALLOW, false, github, last},
		{security.AuthorizationPolicy_ALLOW, true, github, whole},
		{security.AuthorizationPolicy_DENY, false, "https://issuer.example/admin", map[string]string{"https://issuer.example": "admin"}},
		{security.AuthorizationPolicy_DENY, false, "https://a.example/b/*", map[string]string{"https://a.example/b": "", "https://a.example": "b/"}},
	} {
		source := &security.Source{RequestPrincipals: []string{c.value}}
		if c.not {
			source = &security.Source{NotRequestPrincipals: []string{c.value}}
		}
		spec := &security.AuthorizationPolicy{Action: c.action, Rules: []*security.Rule{{From: []*security.Rule_From{{Source: source}}}}}
		out := authz.BuildHTTP([]*authz.Policy{{Namespace: "a", Name: "p", Spec: spec}}, authz.Mesh{})
		r := &rbachttp.RBAC{}
		filters := out.Rest
		if err := filters[0].GetTypedConfig().UnmarshalTo(r); err != nil {
			t.Fatal(err)
		}
		p := r.Rules.Policies["ns[a]-policy[p]-rule[0]"].GetPrincipals()[0].GetAndIds().GetIds()[0]
		if c.not {
			p = p.GetNotId()
		}
		got := map[string]string{}
		for _, each := range append(p.GetOrIds().GetIds(), p) {
			ids := each.GetAndIds().GetIds()
			if len(ids) != 2 {
				continue
			}
			//nolint:staticcheck // the field that Istio writes
			iss, sub := ids[0].GetMetadata().GetValue().GetStringMatch(), ids[1].GetMetadata().GetValue().GetStringMatch()
			got[iss.GetExact()] = sub.GetExact() + sub.GetPrefix()
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%v, not: %v, %s:\n%v, want\n%v", c.action, c.not, c.value, got, c.want)
		}
	}
}

func TestAuthorizersNameHeaders(t *testing.T) {
	for name, change := range map[string]func(p *httpAuthorizer){
		"request":    func(p *httpAuthorizer) { p.IncludeRequestHeadersInCheck = []string{"x", "*"} },
		"upstream":   func(p *httpAuthorizer) { p.HeadersToUpstreamOnAllow = []string{"*"} },
		"downstream": func(p *httpAuthorizer) { p.HeadersToDownstreamOnDeny = []string{"*"} },
	} {
		p := httpProvider()
		change(p.GetEnvoyExtAuthzHttp())
		if _, _, err := authz.BuildProvider(p, func(string) (string, bool) { return authorizer, true }); err == nil {
			t.Errorf("%s: a star alone is taken", name)
		}
	}
}

type httpAuthorizer = meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider

// An authorizer's policies that are only tried stand among the rules that decide, as from istiod,
// and those that count in the shadow.
func TestAuthorizersOfPoliciesThatAreTried(t *testing.T) {
	policy := func(name string, dry bool) *authz.Policy {
		return &authz.Policy{Namespace: "a", Name: name, DryRun: dry, Spec: &security.AuthorizationPolicy{
			Action: security.AuthorizationPolicy_CUSTOM, Rules: []*security.Rule{{}},
			ActionDetail: &security.AuthorizationPolicy_Provider{Provider: &security.AuthorizationPolicy_ExtensionProvider{Name: "default"}},
		}}
	}
	const dry, counts = "istio-ext-authz-default-ns[a]-policy[dry]-rule[0]", "istio-ext-authz-default-ns[a]-policy[counts]-rule[0]"
	for _, c := range []struct {
		list            []*authz.Policy
		decides, shadow []string
	}{
		{[]*authz.Policy{policy("counts", false)}, nil, []string{counts}},
		{[]*authz.Policy{policy("dry", true)}, []string{dry}, nil},
		{[]*authz.Policy{policy("dry", true), policy("counts", false)}, []string{dry}, []string{counts}},
	} {
		out := authz.BuildHTTP(c.list, authz.Mesh{Providers: providers(t, httpProvider())})
		if len(out.Custom) != 2 || out.Custom[1].Name != "envoy.filters.http.ext_authz" {
			t.Fatalf("filters %v", out.Custom)
		}
		r := &rbachttp.RBAC{}
		if err := out.Custom[0].GetTypedConfig().UnmarshalTo(r); err != nil {
			t.Fatal(err)
		}
		decides, shadow := slices.Sorted(maps.Keys(r.GetRules().GetPolicies())), slices.Sorted(maps.Keys(r.GetShadowRules().GetPolicies()))
		if !slices.Equal(decides, c.decides) || !slices.Equal(shadow, c.shadow) || r.GetShadowRules().GetAction() != rbac.RBAC_DENY {
			t.Errorf("%q decide, %q are in the shadow; want %q and %q", decides, shadow, c.decides, c.shadow)
		}
	}
}
