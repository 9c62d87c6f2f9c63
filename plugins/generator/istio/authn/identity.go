package authn

import (
	"slices"
	"strings"
)

const (
	scheme = "spiffe://"
	// idParts is how many parts a workload's name has: DOMAIN/ns/NAMESPACE/sa/NAME.
	idParts = 5
)

// Aliases adds to names of workloads those that they may have in other trust domains.
func Aliases(names, domains []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		id, ok := strings.CutPrefix(n, scheme)
		parts := strings.Split(id, "/")
		if !ok || len(parts) != idParts || parts[1] != "ns" || parts[3] != "sa" {
			continue
		}
		for _, d := range domains {
			parts[0] = d
			out = append(out, scheme+strings.Join(parts, "/"))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
