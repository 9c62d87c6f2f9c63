package authz

import (
	"maps"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	rbactcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Names of filters, and of their statistics.
const (
	httpRBAC     = "envoy.filters.http.rbac"
	networkRBAC  = "envoy.filters.network.rbac"
	httpExternal = "envoy.filters.http.ext_authz"
	tcpExternal  = "envoy.filters.network.ext_authz"
	tcpPrefix    = "tcp."
	// prefixes of what shadow rules decided.
	dryAllow, dryDeny, external = "istio_dry_run_allow_", "istio_dry_run_deny_", "istio_ext_authz_"
)

// HTTP are the filters for requests.
type HTTP struct {
	// Custom ask external authorizers, before tokens are checked; Rest are the policies that the
	// proxy decides itself, after it.
	Custom, Rest []*hcm.HttpFilter
}

// TCP are the filters for connections.
type TCP struct{ Custom, Rest []*listenerv3.Filter }

// BuildHTTP makes the filters for requests: nothing without policies.
func BuildHTTP(policies []*Policy, mesh Mesh) HTTP {
	b := &builder{mesh: mesh}
	return HTTP{Custom: httpFilters(b.custom(policies)), Rest: httpFilters(b.rest(policies))}
}

// BuildTCP makes the filters for connections: what policies ask of requests only doesn't count,
// such that nothing is allowed by it and everything is denied that might be meant.
func BuildTCP(policies []*Policy, mesh Mesh) TCP {
	b := &builder{mesh: mesh, tcp: true}
	return TCP{Custom: tcpFilters(b.custom(policies)), Rest: tcpFilters(b.rest(policies))}
}

// builder makes filters for requests or connections.
type builder struct {
	mesh Mesh
	tcp  bool
}

// filter is one for either.
type filter struct {
	name   string
	config proto.Message
}

func httpFilters(list []filter) []*hcm.HttpFilter {
	var out []*hcm.HttpFilter
	for _, f := range list {
		out = append(out, &hcm.HttpFilter{Name: f.name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: encode.Any(f.config)}})
	}
	return out
}

func tcpFilters(list []filter) []*listenerv3.Filter {
	var out []*listenerv3.Filter
	for _, f := range list {
		out = append(out, &listenerv3.Filter{Name: f.name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: encode.Any(f.config)}})
	}
	return out
}

// rest are the filters of policies that the proxy decides: what is logged, denied, allowed, in this
// order.
func (b *builder) rest(policies []*Policy) []filter {
	var out []filter
	for _, step := range []struct {
		of     security.AuthorizationPolicy_Action
		action rbac.RBAC_Action
	}{
		{security.AuthorizationPolicy_AUDIT, rbac.RBAC_LOG},
		{security.AuthorizationPolicy_DENY, rbac.RBAC_DENY},
		{security.AuthorizationPolicy_ALLOW, rbac.RBAC_ALLOW},
	} {
		if list := ofAction(policies, step.of); len(list) > 0 {
			r := b.rules(list, step.action)
			out = append(out, b.rbac(r, shadowPrefix(r.shadow)))
		}
	}
	return out
}

// shadowPrefix is also what Istio writes where there are no shadow rules.
func shadowPrefix(r *rbac.RBAC) string {
	switch r.GetAction() {
	case rbac.RBAC_ALLOW:
		return dryAllow
	case rbac.RBAC_DENY:
		return dryDeny
	default:
		return ""
	}
}

func (b *builder) rbac(r rules, prefix string) filter {
	if b.tcp {
		return filter{networkRBAC, &rbactcp.RBAC{
			StatPrefix: tcpPrefix, Rules: r.enforced, ShadowRules: r.shadow, ShadowRulesStatPrefix: prefix,
		}}
	}
	return filter{httpRBAC, &rbachttp.RBAC{Rules: r.enforced, ShadowRules: r.shadow, ShadowRulesStatPrefix: prefix}}
}

// custom are the filters of policies that external authorizers decide: rules in the shadow find out
// whether a request is one for the authorizer, which the next filter reads from metadata. Where the
// authorizer is not there or more than one is named, the rules deny.
func (b *builder) custom(policies []*Policy) []filter {
	byProvider := map[string][]*Policy{}
	for _, p := range ofAction(policies, security.AuthorizationPolicy_CUSTOM) {
		name := p.Spec.GetProvider().GetName()
		byProvider[name] = append(byProvider[name], p)
	}
	var out []filter
	for _, name := range slices.Sorted(maps.Keys(byProvider)) {
		r := b.rules(byProvider[name], rbac.RBAC_DENY)
		provider, ok := b.mesh.Providers[name]
		switch {
		case len(byProvider) > 1 || !ok:
			out = append(out, b.rbac(rules{enforced: denied(r.enforced)}, ""))
		case b.tcp && provider.TCP == nil:
			// An authorizer of requests has no say about connections.
		default:
			out = append(out, b.rbac(rules{enforced: r.shadow, shadow: orEmpty(r.enforced)}, external), b.external(name, provider))
		}
	}
	return out
}

func orEmpty(r *rbac.RBAC) *rbac.RBAC {
	if r == nil {
		return &rbac.RBAC{Action: rbac.RBAC_DENY}
	}
	return r
}

// denied are the rules under names that say what happened.
func denied(r *rbac.RBAC) *rbac.RBAC {
	out := &rbac.RBAC{Action: rbac.RBAC_DENY, Policies: map[string]*rbac.Policy{}}
	for name, p := range r.GetPolicies() {
		out.Policies[name+"-deny-due-to-bad-CUSTOM-action"] = p
	}
	return out
}
