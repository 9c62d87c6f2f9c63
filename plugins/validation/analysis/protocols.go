package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const protocolClash = "IST0177"

// spoken is a port of a host.
type spoken struct {
	host string
	port uint32
}

// protocols finds ServiceEntries that say different protocols of the same port of a host to clients
// that see both.
func protocols(w *world) {
	type entry struct {
		of       *Resource
		protocol string
		seen     []string
	}
	by := map[spoken][]entry{}
	for _, s := range of[*networking.ServiceEntry](w) {
		for _, host := range s.spec.Hosts {
			for _, p := range s.spec.Ports {
				at := spoken{strings.ToLower(host), p.GetNumber()}
				by[at] = append(by[at],
					entry{s.Resource, strings.ToUpper(p.GetProtocol()), istio.Export(s.spec.ExportTo, w.mesh.GetDefaultServiceExportTo(), s.Namespace)})
			}
		}
	}
	warned := map[*Resource]bool{}
	order := func(a, b spoken) int { return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.port, b.port)) }
	for _, at := range slices.SortedFunc(maps.Keys(by), order) {
		for _, e := range by[at] {
			said := []string{e.protocol}
			for _, other := range by[at] {
				if meet(e.seen, other.seen) {
					said = append(said, other.protocol)
				}
			}
			slices.Sort(said)
			if said = slices.Compact(said); len(said) > 1 && !warned[e.of] {
				warned[e.of] = true
				w.report(e.of, finding.Warnf(protocolClash, "spec.ports",
					"port %d of %s has different protocols in several ServiceEntries: %s", at.port, at.host, strings.Join(said, ", ")).
					WithHint("give it one protocol in all of them"))
			}
		}
	}
}

// meet reports whether some client sees both of what is seen in these namespaces.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(namespace string) bool {
		return namespace == "*" || slices.Contains(b, "*") || slices.Contains(b, namespace)
	})
}
