package simulator

//lint:file-ignore SA1019 policies still ask in fields that others have replaced, those of istiod among them

import (
	"maps"
	"net/http"
	"slices"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// authorize runs the filter RBAC. Shadow rules leave their result in metadata.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/rbac_filter
func (w *walk) authorize(name string, r *rbacv3.RBAC) {
	var route rbacv3.RBACPerRoute
	if w.perRoute(name, &route) {
		if route.Rbac == nil {
			w.step("filter", name, "it is off for this route")
			return
		}
		r = route.Rbac
	}
	if r.Matcher != nil {
		w.assume("the matching tree of filter %s lets the request through", name)
	}
	if r.ShadowRules != nil {
		w.shadow(name, r)
	}
	denied, policy := decide(w, r.Rules)
	if denied {
		w.answer(http.StatusForbidden, "RBAC: access denied", "rbac_access_denied_matched_policy["+policy+"]",
			"RBAC refuses the request: %s", because(r.Rules, policy))
	} else if r.Rules != nil {
		w.step("filter", name, "RBAC lets it through: %s", because(r.Rules, policy))
	}
}

// decide does as denies, and notes it.
func decide(w *walk, r *rbacconfigv3.RBAC) (denied bool, policy string) {
	denied, policy = w.denies(r)
	if r == nil {
		return denied, policy
	}
	a := Authorization{Policies: slices.Sorted(maps.Keys(r.Policies)), Denied: denied}
	if policy != none {
		a.Policy = policy
	}
	w.out.Authorizations = append(w.out.Authorizations, a)
	return denied, policy
}

// because says what a policy that matched does, or that none did.
func because(r *rbacconfigv3.RBAC, policy string) string {
	verb := map[rbacconfigv3.RBAC_Action]string{
		rbacconfigv3.RBAC_ALLOW: "allows", rbacconfigv3.RBAC_DENY: "denies", rbacconfigv3.RBAC_LOG: "logs",
	}[r.GetAction()]
	if policy == none {
		return "no policy " + verb + " it"
	}
	return policy + " " + verb + " it"
}

func (w *walk) shadow(name string, r *rbacv3.RBAC) {
	denied, policy := w.denies(r.ShadowRules)
	result := "allowed"
	if denied {
		result = "denied"
	}
	w.stream.metadata.put(name, r.ShadowRulesStatPrefix+"shadow_engine_result", result)
	if policy != none {
		w.stream.metadata.put(name, r.ShadowRulesStatPrefix+"shadow_effective_policy_id", policy)
	}
}

// none is what matched where no policy does.
const none = "none"

// denies reports whether rules deny, and the policy that matched; nil ones don't.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/rbac/v3/rbac.proto
func (w *walk) denies(r *rbacconfigv3.RBAC) (denied bool, policy string) {
	if r == nil {
		return false, none
	}
	policy = none
	for _, name := range slices.Sorted(maps.Keys(r.Policies)) {
		if w.policy(r.Policies[name]) {
			policy = name
			break
		}
	}
	switch r.Action {
	case rbacconfigv3.RBAC_ALLOW:
		return policy == none, policy
	case rbacconfigv3.RBAC_DENY:
		return policy != none, policy
	}
	return false, policy
}

func (w *walk) policy(p *rbacconfigv3.Policy) bool {
	if !some(p.Permissions, w.permits) || !some(p.Principals, w.is) {
		return false
	}
	if p.Condition != nil || p.CheckedCondition != nil {
		w.assume("the condition (CEL) of a policy that matches otherwise is false")
		return false
	}
	return true
}

func (w *walk) permits(p *rbacconfigv3.Permission) bool {
	switch rule := p.Rule.(type) {
	case *rbacconfigv3.Permission_Any:
		return rule.Any
	case *rbacconfigv3.Permission_AndRules:
		return every(rule.AndRules.Rules, w.permits)
	case *rbacconfigv3.Permission_OrRules:
		return some(rule.OrRules.Rules, w.permits)
	case *rbacconfigv3.Permission_NotRule:
		return !w.permits(rule.NotRule)
	case *rbacconfigv3.Permission_Header:
		return w.stream != nil && w.stream.matchesHeader(rule.Header)
	case *rbacconfigv3.Permission_UrlPath:
		return w.matchesURLPath(rule.UrlPath)
	case *rbacconfigv3.Permission_DestinationIp:
		p, ok := prefix(rule.DestinationIp)
		return ok && p.Contains(w.local.Addr())
	case *rbacconfigv3.Permission_DestinationPort:
		return rule.DestinationPort == uint32(w.local.Port())
	case *rbacconfigv3.Permission_DestinationPortRange:
		port := int32(w.local.Port())
		return rule.DestinationPortRange.Start <= port && port < rule.DestinationPortRange.End
	case *rbacconfigv3.Permission_RequestedServerName:
		return matchString(rule.RequestedServerName, w.serverName())
	case *rbacconfigv3.Permission_Metadata:
		return w.matchesMetadata(rule.Metadata)
	case *rbacconfigv3.Permission_SourcedMetadata:
		return w.matchesSourced(rule.SourcedMetadata)
	}
	w.assume("a permission of a kind that is not simulated isn't given")
	return false
}

func (w *walk) is(p *rbacconfigv3.Principal) bool {
	switch id := p.Identifier.(type) {
	case *rbacconfigv3.Principal_Any:
		return id.Any
	case *rbacconfigv3.Principal_AndIds:
		return every(id.AndIds.Ids, w.is)
	case *rbacconfigv3.Principal_OrIds:
		return some(id.OrIds.Ids, w.is)
	case *rbacconfigv3.Principal_NotId:
		return !w.is(id.NotId)
	case *rbacconfigv3.Principal_Authenticated_:
		return w.authenticated(id.Authenticated.PrincipalName)
	case *rbacconfigv3.Principal_SourceIp:
		p, ok := prefix(id.SourceIp)
		return ok && p.Contains(w.connection.Source.Addr())
	case *rbacconfigv3.Principal_DirectRemoteIp:
		p, ok := prefix(id.DirectRemoteIp)
		return ok && p.Contains(w.connection.Source.Addr())
	case *rbacconfigv3.Principal_RemoteIp:
		p, ok := prefix(id.RemoteIp)
		return ok && p.Contains(w.remote())
	case *rbacconfigv3.Principal_Header:
		return w.stream != nil && w.stream.matchesHeader(id.Header)
	case *rbacconfigv3.Principal_UrlPath:
		return w.matchesURLPath(id.UrlPath)
	case *rbacconfigv3.Principal_Metadata:
		return w.matchesMetadata(id.Metadata)
	case *rbacconfigv3.Principal_SourcedMetadata:
		return w.matchesSourced(id.SourcedMetadata)
	}
	w.assume("a client isn't what a policy asks for in a way that is not simulated")
	return false
}

// authenticated: the first kind of name that the certificate has counts.
func (w *walk) authenticated(name *matcherv3.StringMatcher) bool {
	if w.connection.TLS == nil || w.opaque {
		return false
	}
	peer := w.connection.TLS.Peer
	switch {
	case name == nil:
		return true
	case peer == nil:
		return matchString(name, "")
	case len(peer.URIs) > 0:
		return some(peer.URIs, func(n string) bool { return matchString(name, n) })
	case len(peer.DNS) > 0:
		return some(peer.DNS, func(n string) bool { return matchString(name, n) })
	}
	return matchString(name, peer.Subject)
}
