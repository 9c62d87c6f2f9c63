// Package authz makes the filters that enforce AuthorizationPolicies: Envoy's RBAC, and its calls
// of external authorizers.
package authz

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	security "istio.io/api/security/v1beta1"
)

// DryRun is the annotation of policies that are evaluated without being enforced.
const DryRun = "istio.io/dry-run"

// Policy is an AuthorizationPolicy that counts for a workload.
type Policy struct {
	Namespace, Name string
	DryRun          bool
	Spec            *security.AuthorizationPolicy
}

// IsDryRun reads the annotation of a policy.
func IsDryRun(annotations map[string]string) bool {
	on, err := strconv.ParseBool(annotations[DryRun])
	return err == nil && on
}

// Mesh is what filters depend on of the mesh's settings.
type Mesh struct {
	// TrustDomains are the mesh's own and its aliases; who has an identity of one has it of all.
	TrustDomains []string
	// Providers are external authorizers by name.
	Providers map[string]Provider
}

// externalPrefix starts the names of rules whose requests are sent to external authorizers.
const externalPrefix = "istio-ext-authz-"

// ruleName names a rule in logs and metadata.
func (p *Policy) ruleName(rule int) string {
	name := fmt.Sprintf("ns[%s]-policy[%s]-rule[%d]", p.Namespace, p.Name, rule)
	switch provider := p.Spec.GetProvider().GetName(); {
	case p.Spec.GetAction() != security.AuthorizationPolicy_CUSTOM:
		return name
	case provider != "":
		return externalPrefix + provider + "-" + name
	}
	return externalPrefix + name
}

// rules are Envoy's rules for policies of one action: those that are enforced, and those that are
// only evaluated. nil where there is no such policy.
type rules struct{ enforced, shadow *rbac.RBAC }

func (b *builder) rules(policies []*Policy, action rbac.RBAC_Action) rules {
	var out rules
	for _, p := range policies {
		to := &out.enforced
		if p.DryRun {
			to = &out.shadow
		}
		if *to == nil {
			*to = &rbac.RBAC{Action: action, Policies: map[string]*rbac.Policy{}}
		}
		maps.Copy((*to).Policies, b.policy(p, action))
	}
	return out
}

// policy makes the rules of one policy, by name. One without rules matches nothing; a rule that
// can't be expressed is left out.
func (b *builder) policy(p *Policy, action rbac.RBAC_Action) map[string]*rbac.Policy {
	if len(p.Spec.Rules) == 0 {
		return map[string]*rbac.Policy{p.ruleName(0): never()}
	}
	in := context{
		tcp:       b.tcp,
		lenient:   action != rbac.RBAC_ALLOW,
		namespace: p.Namespace,
		domains:   b.mesh.TrustDomains,
	}
	out := map[string]*rbac.Policy{}
	for i, r := range p.Spec.Rules {
		if m, err := in.rule(r); err == nil {
			out[p.ruleName(i)] = m
		}
	}
	return out
}

// ofAction are the policies with an action.
func ofAction(policies []*Policy, action security.AuthorizationPolicy_Action) []*Policy {
	return slices.DeleteFunc(slices.Clone(policies), func(p *Policy) bool { return p.Spec.GetAction() != action })
}

// never matches no request.
func never() *rbac.Policy {
	return &rbac.Policy{
		Permissions: []*rbac.Permission{permissionNot(permissionAny())},
		Principals:  []*rbac.Principal{principalNot(principalAny())},
	}
}
