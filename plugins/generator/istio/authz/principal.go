package authz

import (
	"fmt"
	"strings"

	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

type askPrincipal = func(in *context, values []string) ([]*rbac.Principal, error)

func eachPrincipal(one func(in *context, value string) (*rbac.Principal, error)) askPrincipal {
	return each(one, principalOr)
}

// source reads what a source asks.
func source(s *security.Source) []clause[*rbac.Principal] {
	return []clause[*rbac.Principal]{
		{s.GetPrincipals(), s.GetNotPrincipals(), identities},
		{s.GetRequestPrincipals(), s.GetNotRequestPrincipals(), requestPrincipals},
		{s.GetTrustDomains(), s.GetNotTrustDomains(), trustDomains},
		{s.GetServiceAccounts(), s.GetNotServiceAccounts(), eachPrincipal(serviceAccount)},
		{s.GetNamespaces(), s.GetNotNamespaces(), eachPrincipal(namespace)},
		{s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks(), eachPrincipal(remoteAddress)},
		{s.GetIpBlocks(), s.GetNotIpBlocks(), eachPrincipal(peerAddress)},
	}
}

// inlineHeaders starts the keys of headers whose value is a list joined by commas.
const inlineHeaders = "request.experimental.inline.headers"

// sourceCondition is how a condition's key is asked for; nil if it asks for nothing that sources or
// requests have.
func sourceCondition(key string) askPrincipal {
	switch {
	case key == "source.ip":
		return eachPrincipal(peerAddress)
	case key == "remote.ip":
		return eachPrincipal(remoteAddress)
	case key == "source.namespace":
		return eachPrincipal(namespace)
	case key == "source.serviceAccount":
		return eachPrincipal(serviceAccount)
	case key == "source.principal":
		return identities
	case key == "source.trustDomain":
		return trustDomains
	case key == "request.auth.principal":
		return requestPrincipals
	case key == "request.auth.audiences":
		return claim("aud")
	case key == "request.auth.presenter":
		return claim("azp")
	case strings.HasPrefix(key, "request.auth.claims"):
		return claim(authn.Brackets(strings.TrimPrefix(key, "request.auth.claims"))...)
	case strings.HasPrefix(key, "request.headers"):
		return eachPrincipal(headerNamed(strings.TrimPrefix(key, "request.headers"), sensitive))
	case strings.HasPrefix(key, inlineHeaders):
		return eachPrincipal(headerNamed(strings.TrimPrefix(key, inlineHeaders), listed))
	}
	return nil
}

// identities are names of workloads without their scheme; those of one of the mesh's trust domains
// count in all.
func identities(in *context, values []string) ([]*rbac.Principal, error) {
	return eachPrincipal(func(_ *context, value string) (*rbac.Principal, error) {
		return authenticated(identity(value)), nil
	})(in, istio.InTrustDomains(values, in.domains))
}

// namespace is the namespace of a workload; * stands for anything, anywhere.
func namespace(_ *context, value string) (*rbac.Principal, error) {
	return authenticated(pattern(istio.NamespacePattern(value))), nil
}

// serviceAccount is NAMESPACE/NAME or NAME in the policy's own.
func serviceAccount(in *context, value string) (*rbac.Principal, error) {
	return authenticated(pattern(istio.ServiceAccountPattern(value, in.namespace))), nil
}

// trustDomains are those of workloads; one of the mesh's stands for all of them.
func trustDomains(in *context, values []string) ([]*rbac.Principal, error) {
	expanded := istio.SameTrustDomains(values, in.domains)
	return eachPrincipal(func(_ *context, value string) (*rbac.Principal, error) {
		switch {
		case value == "*":
			return authenticated(prefix(istio.Scheme)), nil
		case strings.Contains(value, "*"):
			return authenticated(pattern(istio.TrustDomainPattern(value))), nil
		}
		return authenticated(prefix(istio.Scheme + value + "/")), nil
	})(in, expanded)
}

func peerAddress(_ *context, value string) (*rbac.Principal, error) {
	r, err := addressRange(value)
	return &rbac.Principal{Identifier: &rbac.Principal_DirectRemoteIp{DirectRemoteIp: r}}, err
}

func remoteAddress(_ *context, value string) (*rbac.Principal, error) {
	r, err := addressRange(value)
	return &rbac.Principal{Identifier: &rbac.Principal_RemoteIp{RemoteIp: r}}, err
}

func headerNamed(brackets string, match func(name, value string) headerMatcher) func(in *context, value string) (*rbac.Principal, error) {
	return func(in *context, value string) (*rbac.Principal, error) {
		name := authn.Brackets(brackets)
		switch {
		case in.tcp:
			return nil, errHTTPOnly
		case len(name) != 1:
			return nil, fmt.Errorf("header %q: want a name in brackets", brackets)
		}
		return &rbac.Principal{Identifier: &rbac.Principal_Header{Header: match(name[0], value)}}, nil
	}
}

// claim asks for a claim of the request's token, by path; it holds if the claim is one of the
// values or a list with one.
func claim(name ...string) askPrincipal {
	return func(in *context, values []string) ([]*rbac.Principal, error) {
		switch {
		case in.tcp:
			return nil, errHTTPOnly
		case len(name) == 0:
			return nil, fmt.Errorf("claims: want names in brackets")
		}
		var list []*matcher.ValueMatcher
		for _, v := range values {
			list = append(list, textValue(v))
		}
		return []*rbac.Principal{ofMetadata(authn.Claim(anyValue(list), name...))}, nil
	}
}

// requestPrincipals are ISSUER/SUBJECT of the request's token. Where a rule is on the safe side if
// it matches more, each way counts to part an issuer from a subject which both have slashes (see
// splits); elsewhere the last slash does, as in istiod.
func requestPrincipals(in *context, values []string) ([]*rbac.Principal, error) {
	if in.tcp {
		return nil, errHTTPOnly
	}
	var list []*rbac.Principal
	for _, v := range values {
		at := splits(v)
		if !in.wide {
			at = at[:1]
		}
		for _, i := range at {
			issuer, subject := issuerAndSubject(v, i)
			list = append(list, principalAll([]*rbac.Principal{
				ofMetadata(authn.Payload(stringValue(issuer), "iss")),
				ofMetadata(authn.Payload(stringValue(subject), "sub")),
			}))
		}
	}
	if len(list) == 1 {
		return list, nil
	}
	return []*rbac.Principal{principalOr(list)}, nil
}

// splits are the slashes that may part an issuer from a subject, the last one first, which is
// istiod's: subjects such as those of GitHub's tokens have slashes, and issuers are URLs. Those
// behind a scheme (https://) part nothing. Without a slash it is -1.
func splits(value string) []int {
	out := []int{strings.LastIndex(value, "/")}
	for i := out[0] - 1; i > 0; i-- {
		if value[i] == '/' && value[i-1] != '/' && value[i+1] != '/' {
			out = append(out, i)
		}
	}
	return out
}

// issuerAndSubject splits at a slash; -1: there is none. A star belongs to the part that it stands
// in.
func issuerAndSubject(value string, i int) (issuer, subject *matcher.StringMatcher) {
	iss, sub := value, ""
	if i >= 0 {
		iss, sub = value[:i], value[i+1:]
	}
	switch {
	case value == "*":
		return anything(), anything()
	case strings.HasPrefix(value, "*") && i < 0:
		return anything(), suffix(value[1:])
	case strings.HasPrefix(value, "*"):
		if iss == "*" {
			return anything(), exact(sub)
		}
		return suffix(iss[1:]), exact(sub)
	case strings.HasSuffix(value, "*") && i < 0:
		return prefix(strings.TrimSuffix(value, "*")), anything()
	case sub == "*":
		return exact(iss), anything()
	case strings.HasSuffix(sub, "*"):
		return exact(iss), prefix(strings.TrimSuffix(sub, "*"))
	}
	return exact(iss), exact(sub)
}

func authenticated(name *matcher.StringMatcher) *rbac.Principal {
	return &rbac.Principal{Identifier: &rbac.Principal_Authenticated_{Authenticated: &rbac.Principal_Authenticated{PrincipalName: name}}}
}

//nolint:staticcheck // Istio asks for dynamic metadata in this field, and people's EnvoyFilters match it
func ofMetadata(m *matcher.MetadataMatcher) *rbac.Principal {
	return &rbac.Principal{Identifier: &rbac.Principal_Metadata{Metadata: m}}
}

func principalAny() *rbac.Principal {
	return &rbac.Principal{Identifier: &rbac.Principal_Any{Any: true}}
}

func principalNot(p *rbac.Principal) *rbac.Principal {
	return &rbac.Principal{Identifier: &rbac.Principal_NotId{NotId: p}}
}

func principalOr(list []*rbac.Principal) *rbac.Principal {
	return &rbac.Principal{Identifier: &rbac.Principal_OrIds{OrIds: &rbac.Principal_Set{Ids: list}}}
}

// principalAll holds if all do, and always without any.
func principalAll(list []*rbac.Principal) *rbac.Principal {
	if len(list) == 0 {
		list = append(list, principalAny())
	}
	return &rbac.Principal{Identifier: &rbac.Principal_AndIds{AndIds: &rbac.Principal_Set{Ids: list}}}
}
