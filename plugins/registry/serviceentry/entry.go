package serviceentry

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/entries"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// entry is a ServiceEntry that can be served. It never changes.
type entry struct {
	key, namespace, name string
	row                  *sdk.Row
	spec                 *networking.ServiceEntry
	// addresses in their shortest form; hosts without duplicates.
	hosts, addresses []string
	ports            []*pb.Port
	selector         map[string]string
}

// readEntry makes an entry of its row. The error names everything that is wrong with it.
func readEntry(row *sdk.Row) (*entry, error) {
	spec, err := kinds.Decode[*networking.ServiceEntry](row)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, p := range entries.Check(spec) {
		wrong = append(wrong, p)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	e := &entry{key: row.Key, row: row, spec: spec, selector: spec.GetWorkloadSelector().GetLabels()}
	e.namespace, e.name = kinds.SplitKey(row.Key)
	e.hosts = unique(spec.Hosts)
	for _, a := range spec.Addresses {
		address, _ := hosts.VirtualAddress(a)
		e.addresses = append(e.addresses, address)
	}
	for _, p := range spec.Ports {
		e.ports = append(e.ports, &pb.Port{Number: p.Number, Name: p.Name, Protocol: hosts.Protocol(p.Protocol), Target: target(spec, p)})
	}
	return e, nil
}

// target is a port's target port where it says more than its number: if only the client knows the
// address, any given port is dialed in the place of its own.
func target(spec *networking.ServiceEntry, p *networking.ServicePort) uint32 {
	if p.TargetPort == p.Number && spec.Resolution != networking.ServiceEntry_NONE {
		return 0
	}
	return p.TargetPort
}

// allocated are the addresses that were chosen for a host because the entry has none.
func (e *entry) allocated(host string) (out []string) {
	if len(e.addresses) > 0 {
		return nil
	}
	for _, a := range kinds.Allocated(e.row) {
		if a.Host == "" || a.Host == host {
			out = append(out, a.Value)
		}
	}
	return out
}

// selects reports whether a workload stands behind the entry.
func (e *entry) selects(w *workload) bool {
	return w != nil && w.namespace == e.namespace && istio.ServiceSelects(e.selector, w.selectable)
}

// copies is how often each endpoint counts: istiod makes a service for each address, and each of
// them has the endpoints. Of an entry that has one endpoint at a time, one counts.
func (e *entry) copies() int {
	if e.single() {
		return 1
	}
	return max(1, len(unique(e.addresses)))
}

// single reports whether clients have but one endpoint for a port.
func (e *entry) single() bool { return e.spec.Resolution == networking.ServiceEntry_DNS_ROUND_ROBIN }

// older orders entries by age and then by name: where entries clash, the first one wins.
func older(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.row.Created, b.row.Created), strings.Compare(a.name, b.name))
}

// unique returns the elements in their order without repetitions.
func unique(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
