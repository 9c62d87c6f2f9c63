package authz

import (
	"slices"
	"strings"
)

// localDomain stands for the mesh's own trust domain, whatever it is called.
const localDomain = "cluster.local"

// identityParts is how many parts a whole name of a workload has: DOMAIN/ns/NAMESPACE/sa/NAME.
const identityParts = 5

// inAllDomains adds, for each name of a workload that is of one of the mesh's trust domains, its names in the others.
func inAllDomains(values, domains []string) []string {
	var out []string
	for _, v := range values {
		parts := strings.Split(v, "/")
		own := parts[0]
		if len(parts) != identityParts || own == "*" || own != localDomain && !slices.ContainsFunc(domains, covers(own)) {
			out = append(out, v)
			continue
		}
		out = append(out, inDomains(v, domains)...)
	}
	return out
}

// inDomains are the names of one workload in each trust domain. A name whose domain starts with a star stays as it is where
// that covers the domain.
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
