package serviceentry

import (
	"maps"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// workload is a WorkloadEntry, or an endpoint that a ServiceEntry holds itself, with all defaults. It never changes.
type workload struct {
	key, namespace, name string
	// known is the name that telemetry knows it by.
	known  string
	row    *sdk.Row
	spec   *networking.WorkloadEntry
	labels map[string]string
	// selectable are the labels that selectors see: those that its place implies too.
	selectable                          map[string]string
	network, locality, tlsMode, cluster string
	// node is that of a pod, more are its addresses beside the one of its spec.
	node string
	more []string
	// health: that of a WorkloadEntry is not known to be bad, a pod is ready.
	health pb.EndpointHealth
}

// readWorkload makes a workload of a WorkloadEntry's row; nil where it isn't healthy. Labels of the resource win over those of its spec.
func readWorkload(row *sdk.Row, cluster string) (*workload, error) {
	spec, err := kinds.Decode[*networking.WorkloadEntry](row)
	if err != nil {
		return nil, err
	}
	labels := merged(spec.Labels, row.Labels)
	if err := checkAddress(&networking.WorkloadEntry{Address: spec.Address, Network: spec.Network, Labels: labels}); err != nil {
		return nil, err
	}
	if !healthy(row) {
		return nil, nil
	}
	w := newWorkload(spec, labels, cluster)
	w.key, w.row = row.Key, row
	w.namespace, w.name = kinds.SplitKey(row.Key)
	w.known = knownAs(row, w.name)
	w.selectable = hosts.Augmented(labels, w.locality, cluster, w.network, "")
	return w, nil
}

// Annotations and labels of WorkloadEntries that agents write which register their machines.
const (
	healthChecks = "proxy.istio.io/health-checks-enabled"
	groupName    = "istio.io/autoRegistrationGroup"
	workloadName = "service.istio.io/workload-name"
)

// healthy says whether a workload can serve: one whose health is checked can once somebody found it so.
func healthy(row *sdk.Row) bool {
	checked, err := strconv.ParseBool(row.Annotations[healthChecks])
	return err != nil || !checked || kinds.Healthy(row)
}

// knownAs is the name that telemetry knows a workload by: its group's, the one that its label says, or its own.
func knownAs(row *sdk.Row, name string) string {
	if group, ok := row.Annotations[groupName]; ok {
		return group
	}
	if label, ok := row.Labels[workloadName]; ok {
		return label
	}
	return name
}

func newWorkload(spec *networking.WorkloadEntry, labels map[string]string, cluster string) *workload {
	return &workload{
		spec: spec, labels: labels, cluster: cluster,
		network:  spec.Network,
		locality: hosts.Locality(spec.Locality, labels),
		tlsMode:  hosts.TLSMode(labels, spec.ServiceAccount),
	}
}

func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(b)
	for k, v := range a {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out
}

// address is the address as rows have it.
func (w *workload) address() string {
	if path, ok := hosts.Path(w.spec.Address); ok {
		return hosts.Unix + path
	}
	return w.spec.Address
}

// port is where the workload serves a service's port: its own port of that name, the service's target port, or the
// service's port. Unix sockets have none.
func (w *workload) port(p *pb.Port) uint32 {
	if _, ok := hosts.Path(w.spec.Address); ok {
		return 0
	}
	if own := w.spec.Ports[p.Name]; own > 0 {
		return own
	}
	if p.Target > 0 {
		return p.Target
	}
	return p.Number
}

// workloadRow is the row of table `workloads`.
func (w *workload) workloadRow() *sdk.Row {
	m := &pb.Workload{
		Name: w.name, Namespace: w.namespace, Labels: w.labels, ServiceAccount: w.spec.ServiceAccount,
		Network: w.network, Locality: w.locality, Weight: w.spec.Weight, Ports: w.spec.Ports,
		Cluster: w.cluster, TlsMode: w.tlsMode, Ready: true,
	}
	if a := w.address(); a != "" {
		m.Addresses = []string{a}
	}
	return from(w.row, sdk.WorkloadRow(m))
}
