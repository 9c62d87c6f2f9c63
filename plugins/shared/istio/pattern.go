package istio

import (
	"regexp"
	"strings"
)

// Regular expressions that stand for values of AuthorizationPolicies. Whoever writes them for
// proxies, and whoever says how large they are, means the same.

// NamespacePattern matches identities of workloads of a namespace; each * stands for anything.
func NamespacePattern(namespace string) string { return ".*/ns/" + glob(namespace, ".*") + "/.*" }

// ServiceAccountPattern matches identities of workloads that run as an account: NAMESPACE/NAME, or
// NAME, which is one of the policy's own namespace.
func ServiceAccountPattern(account, own string) string {
	namespace, name, ok := strings.Cut(account, "/")
	if !ok {
		namespace, name = own, account
	}
	return Scheme + ".+/ns/" + regexp.QuoteMeta(namespace) + "/(.+/|)sa/" + regexp.QuoteMeta(name) + "(/.+)?"
}

// TrustDomainPattern matches identities of a trust domain in which stars stand for parts of its
// name.
func TrustDomainPattern(domain string) string { return Scheme + glob(domain, "[^/]*") + "/.*" }

// PrincipalPattern matches identities that end as a principal does, which begins with a star.
func PrincipalPattern(principal string) string {
	return Scheme + ".*" + regexp.QuoteMeta(strings.TrimPrefix(principal, "*"))
}

// ListedPattern matches lists of values, joined by commas, that have a value, which may begin or
// end with a star.
func ListedPattern(value string) string {
	v := regexp.QuoteMeta(value)
	switch {
	case strings.HasPrefix(value, "*"):
		v = ".*" + regexp.QuoteMeta(value[1:])
	case strings.HasSuffix(value, "*"):
		v = regexp.QuoteMeta(strings.TrimSuffix(value, "*")) + ".*"
	}
	return "^" + v + "$|^" + v + ",.*|.*," + v + ",.*|.*," + v + "$"
}

// glob is a regular expression for a text in which stars stand for something.
func glob(value, something string) string {
	parts := strings.Split(value, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return strings.Join(parts, something)
}
