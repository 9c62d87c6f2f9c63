package routes

import "strings"

// claims are the domains that virtual hosts of a route configuration have, in lower case, each as
// its owner writes it: Envoy doesn't heed the case, and refuses to have a domain twice.
type claims map[string]string

// take gives a domain an owner; false: it has one.
func (c claims) take(domain string) bool {
	if c.has(domain) {
		return false
	}
	c[strings.ToLower(domain)] = domain
	return true
}

func (c claims) has(domain string) bool { return c.owner(domain) != "" }

// owner is how the owner of a domain writes it; empty: nobody has it.
func (c claims) owner(domain string) string { return c[strings.ToLower(domain)] }

// claim takes domains, and returns those that nobody had. A host whose own name, which comes first,
// somebody else has gets none; if that is in another case, it gets what is left.
func (c claims) claim(domains []string) []string {
	if len(domains) > 0 && c.owner(domains[0]) == domains[0] {
		return nil
	}
	var out []string
	for _, d := range domains {
		if c.take(d) {
			out = append(out, d)
		}
	}
	return out
}
