package grpc

import (
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// asked is what a rule asks of calls: all of it. Who calls and what for are kept apart, as RBAC
// does.
type asked struct {
	callers []*rbacv3.Principal
	calls   []*rbacv3.Permission
	// unknown: something was asked that gRPC can't know of.
	unknown bool
}

// policy is a rule of an authorization policy. What gRPC can't know of (claims of tokens, for one)
// is true of no call where strict, as rules that allow are, whose rule is nil then; and of all
// otherwise.
func (c *catalog) policy(r *security.Rule, strict bool) *rbacv3.Policy {
	p := &rbacv3.Policy{}
	when := &asked{}
	for _, w := range r.When {
		c.condition(when, w)
	}
	for _, from := range r.From {
		a := &asked{}
		c.source(a, from.GetSource())
		if !a.unknown || !strict {
			p.Principals = append(p.Principals, every(append(a.callers, when.callers...)))
		}
	}
	for _, to := range r.To {
		a := &asked{}
		operation(a, to.GetOperation())
		if !a.unknown || !strict {
			p.Permissions = append(p.Permissions, whatever(append(a.calls, when.calls...)))
		}
	}
	if len(r.From) == 0 {
		p.Principals = []*rbacv3.Principal{every(when.callers)}
	}
	if len(r.To) == 0 {
		p.Permissions = []*rbacv3.Permission{whatever(when.calls)}
	}
	if len(p.Principals) == 0 || len(p.Permissions) == 0 || when.unknown && strict {
		return nil
	}
	return p
}

// caller adds who may call: one of values, and none of others. what makes a principal of a value;
// nil: gRPC can't know that.
func (a *asked) caller(values, others []string, what func(string) *rbacv3.Principal) {
	if ids := all(a, values, what); len(ids) > 0 && len(ids) == len(values) {
		a.callers = append(a.callers, &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: &rbacv3.Principal_Set{Ids: ids}}})
	}
	for _, p := range all(a, others, what) {
		a.callers = append(a.callers, &rbacv3.Principal{Identifier: &rbacv3.Principal_NotId{NotId: p}})
	}
}

// call is caller for what is called.
func (a *asked) call(values, others []string, what func(string) *rbacv3.Permission) {
	if rules := all(a, values, what); len(rules) > 0 && len(rules) == len(values) {
		a.calls = append(a.calls, &rbacv3.Permission{Rule: &rbacv3.Permission_OrRules{OrRules: &rbacv3.Permission_Set{Rules: rules}}})
	}
	for _, p := range all(a, others, what) {
		a.calls = append(a.calls, &rbacv3.Permission{Rule: &rbacv3.Permission_NotRule{NotRule: p}})
	}
}

// all are what is made of values, without those that gRPC can't know of, which is noted.
func all[T any](a *asked, values []string, what func(string) *T) []*T {
	var out []*T
	for _, v := range values {
		if made := what(v); made != nil {
			out = append(out, made)
		} else {
			a.unknown = true
		}
	}
	return out
}

func (c *catalog) source(a *asked, s *security.Source) {
	a.caller(s.GetPrincipals(), s.GetNotPrincipals(), c.principal)
	a.caller(s.GetNamespaces(), s.GetNotNamespaces(), namespace)
	a.caller(s.GetServiceAccounts(), s.GetNotServiceAccounts(), unknown)
	a.caller(s.GetIpBlocks(), s.GetNotIpBlocks(), address)
	a.caller(s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), unknown)
	a.caller(s.GetTrustDomains(), s.GetNotTrustDomains(), unknown)
	a.caller(s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), unknown)
}

func operation(a *asked, o *security.Operation) {
	a.call(o.GetHosts(), o.GetNotHosts(), callHeader(":authority"))
	a.call(o.GetMethods(), o.GetNotMethods(), callHeader(":method"))
	a.call(o.GetPaths(), o.GetNotPaths(), path)
	a.call(o.GetPorts(), o.GetNotPorts(), portOf)
}

// condition adds a `when`.
func (c *catalog) condition(a *asked, w *security.Condition) {
	switch key := w.Key; {
	case key == "source.principal":
		a.caller(w.Values, w.NotValues, c.principal)
	case key == "source.namespace":
		a.caller(w.Values, w.NotValues, namespace)
	case key == "source.ip":
		a.caller(w.Values, w.NotValues, address)
	case key == "destination.port":
		a.call(w.Values, w.NotValues, portOf)
	case key == "destination.ip":
		a.call(w.Values, w.NotValues, func(s string) *rbacv3.Permission {
			if r := cidr(s); r != nil {
				return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationIp{DestinationIp: r}}
			}
			return nil
		})
	case strings.HasPrefix(key, "request.headers[") && strings.HasSuffix(key, "]"):
		a.call(w.Values, w.NotValues, callHeader(strings.ToLower(key[len("request.headers["):len(key)-1])))
	default:
		a.unknown = true
	}
}

func every(all []*rbacv3.Principal) *rbacv3.Principal {
	if len(all) == 0 {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_Any{Any: true}}
	}
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_AndIds{AndIds: &rbacv3.Principal_Set{Ids: all}}}
}

func whatever(all []*rbacv3.Permission) *rbacv3.Permission {
	if len(all) == 0 {
		return &rbacv3.Permission{Rule: &rbacv3.Permission_Any{Any: true}}
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_AndRules{AndRules: &rbacv3.Permission_Set{Rules: all}}}
}

func unknown(string) *rbacv3.Principal { return nil }

// principal is TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT: one of the mesh's trust domains stands for all
// of them.
func (c *catalog) principal(s string) *rbacv3.Principal {
	if strings.HasPrefix(s, "*") {
		return authenticated(pattern(s, ""))
	}
	set := &rbacv3.Principal_Set{}
	for _, name := range istio.InTrustDomains([]string{s}, istio.TrustDomains(c.mesh.TrustDomain, c.mesh.TrustDomainAliases)) {
		set.Ids = append(set.Ids, authenticated(pattern(name, istio.Scheme)))
	}
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_OrIds{OrIds: set}}
}

func namespace(s string) *rbacv3.Principal {
	quoted := strings.ReplaceAll(strings.ReplaceAll(s, ".", `\.`), "*", ".*")
	return authenticated(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(".*/ns/" + quoted + "/.*")}})
}

func authenticated(m *matcherv3.StringMatcher) *rbacv3.Principal {
	return &rbacv3.Principal{Identifier: &rbacv3.Principal_Authenticated_{Authenticated: &rbacv3.Principal_Authenticated{PrincipalName: m}}}
}

func address(s string) *rbacv3.Principal {
	if r := cidr(s); r != nil {
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_DirectRemoteIp{DirectRemoteIp: r}}
	}
	return nil
}

// callHeader matches a header. gRPC refuses rules about those that it writes itself (A41).
func callHeader(name string) func(string) *rbacv3.Permission {
	return func(value string) *rbacv3.Permission {
		if strings.HasPrefix(name, "grpc-") || name == ":scheme" || name == "" {
			return nil
		}
		return &rbacv3.Permission{Rule: &rbacv3.Permission_Header{Header: &routev3.HeaderMatcher{
			Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: pattern(value, "")},
		}}}
	}
}

func path(s string) *rbacv3.Permission {
	if strings.ContainsAny(s, "{}") {
		return nil
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UrlPath{UrlPath: &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: pattern(s, "")}}}}
}

func portOf(s string) *rbacv3.Permission {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return nil
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationPort{DestinationPort: uint32(n)}}
}

// pattern is a text that may begin or end with a wildcard; prefix stands before it.
func pattern(s, prefix string) *matcherv3.StringMatcher {
	switch {
	case s == "*":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(".+")}}
	case strings.HasPrefix(s, "*"):
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: s[1:]}}
	case strings.HasSuffix(s, "*"):
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix + s[:len(s)-1]}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: prefix + s}}
}

// cidr reads an address or a range; nil where it is none.
func cidr(s string) *corev3.CidrRange {
	r, err := netip.ParsePrefix(s)
	if err != nil {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil
		}
		r = netip.PrefixFrom(a, a.BitLen())
	}
	return &corev3.CidrRange{AddressPrefix: r.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(r.Bits()))}
}
