package istio

import (
	"slices"
	"strings"
)

// Scheme begins the names of workloads in certificates; policies leave it out.
const Scheme = "spiffe://"

// Identity is who a workload is: spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT.
type Identity struct{ TrustDomain, Namespace, ServiceAccount string }

// ParseIdentity reads an identity; ok is false for other names.
func ParseIdentity(uri string) (id Identity, ok bool) {
	rest, ok := strings.CutPrefix(uri, Scheme)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" || parts[0] == "" || parts[2] == "" || parts[4] == "" {
		return Identity{}, false
	}
	return Identity{TrustDomain: parts[0], Namespace: parts[2], ServiceAccount: parts[4]}, true
}

// String returns the identity as a SPIFFE ID.
func (i Identity) String() string {
	return Scheme + i.TrustDomain + "/ns/" + i.Namespace + "/sa/" + i.ServiceAccount
}

// AccountIdentity is the name of a workload that runs as a service account, which may be such a
// name already; empty without one.
func AccountIdentity(account, namespace, trustDomain string) string {
	if account == "" || strings.HasPrefix(account, Scheme) {
		return account
	}
	return Identity{trustDomain, namespace, account}.String()
}

// Aliases adds to names of workloads those that they may have in other trust domains. The result is
// sorted.
func Aliases(names, domains []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		id, ok := ParseIdentity(n)
		if !ok {
			continue
		}
		for _, id.TrustDomain = range domains {
			out = append(out, id.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
