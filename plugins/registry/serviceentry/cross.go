package serviceentry

import (
	"math"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// readPod makes a workload of another registry's row; nil where there is none, or it doesn't serve.
func readPod(row *sdk.Row) (*workload, error) {
	if row == nil {
		return nil, nil
	}
	m, err := sdk.WorkloadOf(row)
	if err != nil || !m.Ready || len(m.Addresses) == 0 {
		return nil, err
	}
	w := &workload{
		key: row.Key, namespace: m.Namespace, name: m.Name, known: m.Name, row: row, labels: m.Labels, node: m.Node, more: m.Addresses[1:],
		network: m.Network, locality: m.Locality, tlsMode: m.TlsMode, cluster: m.Cluster, health: pb.EndpointHealthReady,
		spec: &networking.WorkloadEntry{Address: m.Addresses[0], Ports: m.Ports, Weight: m.Weight, ServiceAccount: m.ServiceAccount},
	}
	if m.Workload != "" {
		w.known = m.Workload
	}
	if workloadentry.IsRemote(row.Key) {
		if !workloadentry.Selectable(w.spec) {
			return nil, nil // as istiod: of other clusters, entries with names are selected by nobody
		}
		w.health = 0
	}
	w.selectable = hosts.Augmented(w.labels, w.locality, w.cluster, w.network, w.node)
	return w, nil
}

// service is another registry's that selects workloads.
type service struct {
	*pb.Service
	row *sdk.Row
}

// readService reads another registry's service; nil where there is none, or it selects no
// WorkloadEntries.
func readService(row *sdk.Row) (*service, error) {
	if row == nil {
		return nil, nil
	}
	s, err := sdk.ServiceOf(row)
	if err != nil || !workloadentry.SelectsEntries(s) {
		return nil, err
	}
	return &service{s, row}, nil
}

func (s *service) selects(w *workload) bool {
	return w != nil && w.namespace == s.Namespace && len(w.labels) > 0 && istio.ServiceSelects(s.Selector, w.selectable)
}

// addRows adds the endpoints that WorkloadEntries are for the service, behind those that its own
// registry knows.
func (s *service) addRows(workloads []*workload, rows map[rowName]*sdk.Row) {
	var endpoints []*pb.Endpoint
	var origins []*sdk.Row
	for _, w := range workloads {
		if !workloadentry.Selectable(w.spec) {
			continue
		}
		for _, p := range s.Ports {
			port, ok := workloadentry.ClusterPort(w.spec, p)
			if !ok {
				continue
			}
			e := w.endpoint(&entry{namespace: s.Namespace}, s.Host, p)
			e.Port, e.Index = port, math.MaxUint32
			endpoints, origins = append(endpoints, e), append(origins, w.row)
		}
	}
	for i, r := range sdk.EndpointRows(endpoints...) {
		rows[rowName{Table: state.Endpoints, Key: r.Key}] = from(origins[i], r)
	}
}
