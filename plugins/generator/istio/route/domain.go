package route

import (
	"net/netip"
	"strings"
)

// Domains are the names by which clients of a DNS domain (default.svc.cluster.local) may call a
// host: its full name, with and without the root's dot, what is left of it where the client's
// domain completes it, and its addresses.
func Domains(host, clientDomain string, addresses ...string) []string {
	var out []string
	if a, err := netip.ParseAddr(host); err == nil {
		out = []string{bracket(a)}
	} else {
		out = append([]string{host}, short(host, clientDomain)...)
		if host != "*" && !strings.HasSuffix(host, ".") {
			out = append(out, host+".")
		}
	}
	for _, address := range addresses {
		a, err := netip.ParseAddr(address)
		switch {
		case a.IsUnspecified() || address == "":
			continue
		case err == nil:
			address = bracket(a)
		case strings.Contains(address, ":"): // a block of addresses
			address = "[" + address + "]"
		}
		out = append(out, address)
	}
	return out
}

// AtPort are names with and without a port behind them.
func AtPort(names []string, port uint32) []string {
	out := make([]string, 0, 2*len(names))
	for _, n := range names {
		out = append(out, n, HostName(n, port))
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

// services parts the namespace from the rest of the domain of a cluster's services.
const services = ".svc."

// short are the incomplete names that a client's resolver would complete to host.
func short(host, clientDomain string) []string {
	if strings.Contains(clientDomain, services) {
		return shortInCluster(host, clientDomain)
	}
	own, shared := split(host, clientDomain)
	switch {
	case own == "" || shared == "":
		return nil
	case strings.Count(own, ".") == 1: // it names a namespace of the client's domain
		first, _, _ := strings.Cut(shared, ".")
		return []string{own, own + "." + first}
	}
	return []string{own}
}

// InCluster parts the DNS domain of a namespace's clients, NAMESPACE.svc.CLUSTER, into the
// namespace and that of the cluster, .svc.CLUSTER.
func InCluster(clientDomain string) (namespace, cluster string, ok bool) {
	namespace, cluster, ok = strings.Cut(clientDomain, services)
	return namespace, services + cluster, ok
}

// Label returns the first label of a service's host, by which clients of its namespace call it in
// addition to what Domains gives for those of the cluster (InCluster). It comes second among their
// domains.
func Label(host, cluster string) (label, namespace string, ok bool) {
	full, ok := strings.CutSuffix(host, cluster)
	if !ok {
		return "", "", false
	}
	return strings.Cut(full, ".")
}

// shortInCluster are those of a service (NAME.NAMESPACE.svc…) of the client's cluster. Names of
// other hosts might be taken for services.
func shortInCluster(host, clientDomain string) []string {
	namespace, cluster, _ := InCluster(clientDomain)
	name, in, ok := Label(host, cluster)
	if !ok {
		return nil
	}
	full := strings.TrimSuffix(host, cluster)
	if in == namespace {
		return []string{name, full, full + ".svc"}
	}
	return []string{full, full + ".svc"}
}

// split parts a host from the domain that it shares with the client, label by label from the end.
func split(host, clientDomain string) (own, shared string) {
	h, c := strings.Split(host, "."), strings.Split(clientDomain, ".")
	n := 0
	for n < len(h) && n < len(c) && h[len(h)-1-n] == c[len(c)-1-n] {
		n++
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
