package istio

import (
	"cmp"
	"slices"
	"strings"
)

// LocalTrustDomain is the trust domain of a mesh that says none. In policies it stands for the
// mesh's own trust domain, whatever it is called.
const LocalTrustDomain = "cluster.local"

// TrustDomains are a mesh's own and its aliases; who has an identity of one has it of all.
func TrustDomains(own string, aliases []string) []string {
	return unique(append([]string{cmp.Or(own, LocalTrustDomain)}, aliases...))
}

// InTrustDomains adds to names of workloads as policies write them, without Scheme, those that they
// have in the mesh's other trust domains. A name that isn't whole, DOMAIN/ns/NAMESPACE/sa/NAME, or
// whose domain is a star, stays as it is.
func InTrustDomains(values, domains []string) []string {
	var out []string
	for _, v := range values {
		parts := strings.Split(v, "/")
		own := parts[0]
		if len(parts) != 5 || own == "*" || own != LocalTrustDomain && !slices.ContainsFunc(domains, covers(own)) {
			out = append(out, v)
			continue
		}
		out = append(out, inDomains(v, domains)...)
	}
	return out
}

// SameTrustDomains adds to trust domains those that mean the same in the mesh.
func SameTrustDomains(values, domains []string) []string {
	var out []string
	for _, v := range values {
		if slices.Contains(domains, v) {
			out = append(out, domains...)
		} else {
			out = append(out, v)
		}
	}
	return unique(out)
}

// inDomains are the names of one workload in each trust domain. A name whose domain starts with a
// star stays as it is where that covers the domain.
func inDomains(value string, domains []string) []string {
	own, rest, _ := strings.Cut(value, "/")
	var out []string
	for _, d := range domains {
		if strings.HasPrefix(own, "*") && strings.HasSuffix(d, own[1:]) {
			out = append(out, value)
		} else {
			out = append(out, d+"/"+rest)
		}
	}
	return unique(out)
}

// covers reports whether a pattern with a star at one end is right for a domain.
func covers(pattern string) func(domain string) bool {
	return func(domain string) bool {
		switch {
		case strings.HasPrefix(pattern, "*"):
			return strings.HasSuffix(domain, pattern[1:])
		case strings.HasSuffix(pattern, "*"):
			return strings.HasPrefix(domain, strings.TrimSuffix(pattern, "*"))
		}
		return domain == pattern
	}
}

// unique keeps the first of each.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
