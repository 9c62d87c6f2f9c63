package serviceentry

import (
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/entries"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// groupEndpoints are the endpoints of all entries of a host, and the rows that they come from.
// Those that entries hold themselves are numbered through; selected workloads share the number of
// their entry's first place, and stand in order of their names, so that one more doesn't change the
// others. Where clients have but one endpoint for a port, the first counts.
func groupEndpoints(host, cluster string, members []member) (out []*pb.Endpoint, origins []*sdk.Row) {
	index := 0
	served := map[uint32]bool{}
	for _, m := range members {
		behind := m.behind(host, cluster)
		for i, w := range behind {
			for _, p := range m.ports {
				if m.single() && served[p.Number] {
					continue
				}
				served[p.Number] = true
				e := w.endpoint(m.entry, host, p)
				e.Index = uint32(index)
				if m.selector == nil {
					e.Index += uint32(i)
				}
				out = append(out, slices.Repeat([]*pb.Endpoint{e}, m.copies())...)
				origins = append(origins, slices.Repeat([]*sdk.Row{origin(m.entry, w)}, m.copies())...)
			}
		}
		if m.selector == nil {
			index += len(behind)
		} else {
			index++
		}
	}
	return out, origins
}

// behind are the workloads that serve an entry's host: those that it lists, those that it selects,
// or what DNS says of the host.
func (m member) behind(host, cluster string) []*workload {
	r := m.spec.Resolution
	switch {
	case r == networking.ServiceEntry_DYNAMIC_DNS:
		return nil
	case m.spec.WorkloadSelector != nil:
		return slices.DeleteFunc(slices.Clone(m.workloads), func(w *workload) bool { return !reachable(r, w) })
	case len(m.spec.Endpoints) == 0 && entries.ByDNS(r):
		return []*workload{m.resolved(host, cluster)}
	}
	var out []*workload
	for i, spec := range m.spec.Endpoints {
		w := newWorkload(spec, spec.Labels, cluster)
		w.name, w.namespace = m.name+"-"+strconv.Itoa(i), m.namespace
		w.known = w.name
		out = append(out, w)
	}
	return out
}

// resolved is the endpoint of a host that DNS resolves.
func (m member) resolved(host, cluster string) *workload {
	w := newWorkload(&networking.WorkloadEntry{Address: host}, nil, cluster)
	w.name, w.known, w.namespace = m.name, m.name, m.namespace
	return w
}

// reachable reports whether a service of such a resolution can select the workload: names are for
// those that look them up, and Unix sockets for entries that list them.
func reachable(r networking.ServiceEntry_Resolution, w *workload) bool {
	if _, unix := hosts.Path(w.spec.Address); unix {
		return false
	}
	return entries.ByDNS(r) || w.spec.Address == "" || hosts.IsIP(w.spec.Address)
}

func (w *workload) endpoint(e *entry, host string, p *pb.Port) *pb.Endpoint {
	return &pb.Endpoint{
		Host: host, Namespace: e.namespace, PortName: p.Name, ServicePort: p.Number,
		Address: workloadentry.Address(w.spec), MoreAddresses: w.more, Port: workloadentry.Port(w.spec, p), Labels: w.labels,
		Network: w.network, Locality: w.locality, Weight: w.spec.Weight, ServiceAccount: w.spec.ServiceAccount,
		TlsMode: w.tlsMode, Cluster: w.cluster, Workload: w.known, Node: w.node, Health: w.health,
	}
}

func origin(e *entry, w *workload) *sdk.Row {
	if w.row != nil {
		return w.row
	}
	return e.row
}
