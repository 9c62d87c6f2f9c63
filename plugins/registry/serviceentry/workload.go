package serviceentry

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// workload is a WorkloadEntry, or an endpoint that a ServiceEntry holds itself, with all defaults.
// It never changes.
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

// readWorkload makes a workload of a WorkloadEntry's row; nil where it isn't healthy.
func readWorkload(row *sdk.Row, cluster string) (*workload, error) {
	e, err := workloadentry.Read(row)
	if e == nil {
		return nil, err
	}
	w := newWorkload(e.Spec, e.Labels, cluster)
	w.key, w.row, w.namespace, w.name, w.known = row.Key, row, e.Namespace, e.Name, e.Known
	w.selectable = hosts.Augmented(e.Labels, w.locality, cluster, w.network, "")
	return w, nil
}

func newWorkload(spec *networking.WorkloadEntry, labels map[string]string, cluster string) *workload {
	return &workload{
		spec: spec, labels: labels, cluster: cluster,
		network:  spec.Network,
		locality: hosts.Locality(spec.Locality, labels),
		tlsMode:  hosts.TLSMode(labels, spec.ServiceAccount),
	}
}

// workloadRow is the row of table `workloads`.
func (w *workload) workloadRow() *sdk.Row {
	m := &pb.Workload{
		Name: w.name, Namespace: w.namespace, Labels: w.labels, ServiceAccount: w.spec.ServiceAccount,
		Network: w.network, Locality: w.locality, Weight: w.spec.Weight, Ports: w.spec.Ports,
		Cluster: w.cluster, TlsMode: w.tlsMode, Ready: true,
	}
	if a := workloadentry.Address(w.spec); a != "" {
		m.Addresses = []string{a}
	}
	return from(w.row, sdk.WorkloadRow(m))
}
