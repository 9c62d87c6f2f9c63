package authn_test

import (
	"testing"

	security "istio.io/api/security/v1beta1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

type mtls = security.PeerAuthentication_MutualTLS

func policy(app string, mode security.PeerAuthentication_MutualTLS_Mode, ports map[uint32]*mtls) *config.PeerAuthentication {
	p := &config.PeerAuthentication{Spec: &security.PeerAuthentication{Mtls: &mtls{Mode: mode}, PortLevelMtls: ports}}
	if app != "" {
		p.Spec.Selector = &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": app}}
	}
	return p
}

const (
	strict     = security.PeerAuthentication_MutualTLS_STRICT
	disable    = security.PeerAuthentication_MutualTLS_DISABLE
	permissive = security.PeerAuthentication_MutualTLS_PERMISSIVE
	unset      = security.PeerAuthentication_MutualTLS_UNSET
)

func TestModes(t *testing.T) {
	web := map[string]string{"app": "web", "version": "v1"}
	list := func(p ...*config.PeerAuthentication) []*config.PeerAuthentication { return p }
	for _, c := range []struct {
		name      string
		root, own []*config.PeerAuthentication
		port      uint32
		want      authn.Mode
	}{
		{"without policies", nil, nil, 80, authn.Permissive},
		{"mesh", list(policy("", strict, nil)), nil, 80, authn.Strict},
		{"namespace over mesh", list(policy("", strict, nil)), list(policy("", disable, nil)), 80, authn.Disable},
		{"unset inherits from the mesh", list(policy("", strict, nil)), list(policy("", unset, nil)), 80, authn.Strict},
		{"oldest of a namespace", nil, list(policy("", strict, nil), policy("", disable, nil)), 80, authn.Strict},
		{"workload over namespace", nil, list(policy("", strict, nil), policy("web", permissive, nil)), 80, authn.Permissive},
		{"other workload", nil, list(policy("", strict, nil), policy("db", permissive, nil)), 80, authn.Strict},
		{"oldest of a workload", nil, list(policy("web", disable, nil), policy("web", strict, nil)), 80, authn.Disable},
		{"unset of a workload inherits", nil, list(policy("", strict, nil), policy("web", unset, nil)), 80, authn.Strict},
		{"selectors in the root namespace mean nothing", list(policy("web", strict, nil)), nil, 80, authn.Permissive},
		{"port", nil, list(policy("web", strict, map[uint32]*mtls{80: {Mode: disable}})), 80, authn.Disable},
		{"other port", nil, list(policy("web", strict, map[uint32]*mtls{80: {Mode: disable}})), 81, authn.Strict},
		{"unset of a port inherits", nil, list(policy("web", strict, map[uint32]*mtls{80: {}})), 80, authn.Strict},
		{"ports of a namespace's policy mean nothing", nil, list(policy("", strict, map[uint32]*mtls{80: {Mode: disable}})), 80, authn.Strict},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := authn.In(c.root, c.own)
			if got := authn.ParseModes(p.For(web).Text()).Port(c.port); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got, want := authn.ParseRefusals(p.Refusals())(web, c.port), c.want == authn.Disable; got != want {
				t.Errorf("refuses %v, want %v", got, want)
			}
		})
	}
}

func TestNobodyRefusesIsNoText(t *testing.T) {
	p := authn.In(nil, []*config.PeerAuthentication{policy("", strict, nil), policy("web", permissive, map[uint32]*mtls{80: {Mode: strict}})})
	if got := p.Refusals(); got != "" {
		t.Errorf("%s, want nothing: strict and permissive are the same to clients", got)
	}
}

func TestHeaderClaim(t *testing.T) {
	for header, want := range map[string][]string{
		"x-user":                             nil,
		"@request.auth.claims":               nil,
		"@request.auth.claims.":              nil,
		"@request.auth.claims.a":             {"a"},
		"@request.auth.claims.a.b":           {"a", "b"},
		"@request.auth.claims[https://x.y/]": {"https://x.y/"},
		"@request.auth.claims[a][b.c]":       {"a", "b.c"},
		"@request.auth.claimsa":              nil,
		"@Request.Auth.Claims.A":             {"A"},
	} {
		if got := authn.HeaderClaim(header); !equal(got, want) {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
