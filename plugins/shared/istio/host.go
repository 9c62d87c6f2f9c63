package istio

import "strings"

// Resolve returns the full name that a host in a resource of a namespace means: a name without dots
// is a service of that namespace.
func Resolve(host, namespace, domain string) string {
	if host == "" || strings.Contains(host, ".") || strings.HasPrefix(host, "*") {
		return host
	}
	return host + "." + namespace + ".svc." + domain
}

// IsWildcard reports whether a host stands for many (`*`, `*.example.com`).
func IsWildcard(host string) bool { return strings.HasPrefix(host, "*") }

// Covers reports whether every name that b means is meant by a too.
func Covers(a, b string) bool {
	if !IsWildcard(a) {
		return a == b
	}
	return strings.HasSuffix(strings.TrimPrefix(b, "*"), a[1:])
}

// Overlaps reports whether some name is meant by both.
func Overlaps(a, b string) bool { return Covers(a, b) || Covers(b, a) }

// OverlapsFold is Overlaps without regard to case, as names are compared that are not lower case
// yet.
func OverlapsFold(a, b string) bool { return Overlaps(strings.ToLower(a), strings.ToLower(b)) }

// Narrower returns the host that says more, of two that overlap.
func Narrower(a, b string) string {
	if Covers(a, b) {
		return b
	}
	return a
}

// MoreSpecific orders hosts: exact before wildcard, longer wildcards before shorter, then by name.
func MoreSpecific(a, b string) int {
	if x, y := IsWildcard(a), IsWildcard(b); x != y {
		if y {
			return -1
		}
		return 1
	}
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(a, b)
}
