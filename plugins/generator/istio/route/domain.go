package route

import (
	"net/netip"
	"strings"
)

// Domains are the names by which clients of a DNS domain (default.svc.cluster.local) may call a host: its full name, with and
// without the root's dot, what is left of it where the client's domain completes it, and its address.
func Domains(host, clientDomain, address string) []string {
	out := []string{host}
	if a, err := netip.ParseAddr(host); err == nil {
		return []string{bracket(a)}
	}
	out = append(out, short(host, clientDomain)...)
	if host != "*" && !strings.HasSuffix(host, ".") {
		out = append(out, host+".")
	}
	if a, err := netip.ParseAddr(address); err == nil && a.IsUnspecified() {
		address = ""
	} else if err == nil {
		address = bracket(a)
	}
	if address != "" {
		out = append(out, address)
	}
	return out
}

// bracket writes IPv6 as it stands in a Host header.
func bracket(a netip.Addr) string {
	if a.Is6() && !a.Is4In6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// short are the incomplete names that a client's resolver would complete to host.
func short(host, clientDomain string) []string {
	own, shared := split(host, clientDomain)
	if own == "" || shared == "" {
		return nil
	}
	switch {
	case !strings.Contains(clientDomain, ".svc."):
		if shared == clientDomain {
			return []string{own}
		}
		return nil
	case strings.HasPrefix(shared, "svc."):
		return []string{own, own + ".svc"}
	case shared == clientDomain:
		namespace, _, _ := strings.Cut(shared, ".")
		return []string{own, own + "." + namespace, own + "." + namespace + ".svc"}
	}
	return []string{own}
}

// split parts a host from the domain that it shares with the client, label by label from the end. The shared part has at
// least two labels.
func split(host, clientDomain string) (own, shared string) {
	h, c := strings.Split(host, "."), strings.Split(clientDomain, ".")
	n := 0
	for n < len(h) && n < len(c) && h[len(h)-1-n] == c[len(c)-1-n] {
		n++
	}
	if n < 2 {
		return host, ""
	}
	return strings.Join(h[:len(h)-n], "."), strings.Join(h[len(h)-n:], ".")
}

// Outside is the name by which clients call a host that no registry knows: only what was written.
func Outside(host string) []string {
	if a, err := netip.ParseAddr(host); err == nil {
		return []string{bracket(a)}
	}
	return []string{host}
}
