package grpc

import (
	"fmt"
	"slices"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

const rbacFilter = "envoy.filters.http.rbac"

// policiesOf are the keys of the authorization policies for a workload, in order: those of the root
// namespace and of its own, that are for it.
// https://istio.io/latest/docs/reference/config/security/authorization-policy/
func (c *catalog) policiesOf(who identity) []string {
	var keys []string
	for _, p := range c.authorization {
		counts := p.namespace == c.mesh.RootNamespace || p.namespace == who.namespace
		if counts && istio.Attaches(p.spec, p.namespace == who.namespace, who.labels) {
			keys = append(keys, p.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// authorize are the filters by which a server refuses calls (A41): what is denied, and then what is
// not allowed, if anything is. A server can't ask anybody, so that what a CUSTOM policy would ask
// about is denied.
func (c *catalog) authorize(keys []string) []*hcm.HttpFilter {
	denied, allowed := map[string]*rbacv3.Policy{}, map[string]*rbacv3.Policy{}
	allows := false
	for _, p := range c.authorization {
		if !slices.Contains(keys, p.key) {
			continue
		}
		into, strict := denied, false
		switch p.spec.Action {
		case security.AuthorizationPolicy_ALLOW:
			into, strict, allows = allowed, true, true
		case security.AuthorizationPolicy_AUDIT:
			continue
		}
		for i, r := range p.spec.Rules {
			if made := c.policy(r, strict); made != nil {
				into[fmt.Sprintf("%s[%d]", p.key, i)] = made
			}
		}
	}
	var out []*hcm.HttpFilter
	if len(denied) > 0 {
		out = append(out, rbac(rbacv3.RBAC_DENY, denied))
	}
	if allows {
		out = append(out, rbac(rbacv3.RBAC_ALLOW, allowed))
	}
	return out
}

func rbac(action rbacv3.RBAC_Action, policies map[string]*rbacv3.Policy) *hcm.HttpFilter {
	name := rbacFilter
	if action == rbacv3.RBAC_DENY {
		name += ".deny" // names are unique in a chain
	}
	return filter(name, &rbacfilterv3.RBAC{Rules: &rbacv3.RBAC{Action: action, Policies: policies}})
}
