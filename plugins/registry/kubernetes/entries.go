package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// entryVersions are the versions of WorkloadEntry that are read, the newest first.
var entryVersions = []schema.GroupVersion{
	{Group: "networking.istio.io", Version: "v1"},
	{Group: "networking.istio.io", Version: "v1beta1"},
	{Group: "networking.istio.io", Version: "v1alpha3"},
}

// WorkloadEntries says what WorkloadEntries of a remote cluster count for. Names in parentheses are
// istiod's. Those of the cluster that has the mesh's configuration are the configuration's, and
// registry/serviceentry knows them.
type WorkloadEntries struct {
	// Read: ServiceEntries and the cluster's own services may select them
	// (PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY).
	Read bool `json:"read" doc:"Whether they are read, so that ServiceEntries and services of their cluster can select them."`
	// Services: the cluster's services select them (PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES).
	Services bool `json:"services" doc:"Whether services of their cluster select them."`
}

// entry is what is kept of a WorkloadEntry.
type entry struct {
	metav1.ObjectMeta
	// is the workload; nil: it isn't healthy.
	is *workloadentry.Entry
	// wrong says why it can't be used; the version before it counts.
	wrong error
}

// leanEntry makes an entry of what the API server sent.
func leanEntry(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	out := &entry{ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(),
		ResourceVersion: u.GetResourceVersion(), UID: u.GetUID(), Labels: u.GetLabels(),
	}}
	out.is, out.wrong = readEntry(u)
	return out, nil
}

func readEntry(u *unstructured.Unstructured) (*workloadentry.Entry, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"], "status": u.Object["status"],
		"metadata": map[string]any{
			"name": u.GetName(), "namespace": u.GetNamespace(),
			"labels": u.GetLabels(), "annotations": u.GetAnnotations(),
		},
	})
	if err != nil {
		return nil, err
	}
	documents := kinds.Read(u.GetName(), text)
	if len(documents) != 1 {
		return nil, fmt.Errorf("it is no object")
	}
	if row := documents[0].Row; row != nil {
		return workloadentry.Read(row)
	}
	var wrong []string
	for _, f := range documents[0].Faults {
		wrong = append(wrong, f.Field+": "+f.Message)
	}
	return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
}

// entriesIn are the entries of a namespace that count, by their names, each the last good version.
type entriesIn map[string]*workloadentry.Entry

// readEntries takes the WorkloadEntries that have changed, and adds to units the services that
// select them, or did.
func (p *publication) readEntries(units map[unit]bool) {
	if p.watched.entries == nil {
		return
	}
	changed := map[string][]*workloadentry.Entry{} // by namespace, before and after
	for u := range units {
		if u.table == kinds.WorkloadEntry {
			namespace, name, _ := strings.Cut(u.key, "/")
			old := p.entries[namespace][name]
			now := p.entryNow(u.key, old)
			p.setEntry(namespace, name, now)
			changed[namespace] = append(changed[namespace], old, now)
		}
	}
	if len(changed) == 0 {
		return
	}
	for _, s := range all[corev1.Service](p.watched.services) {
		selects := func(e *workloadentry.Entry) bool { return p.selects(s.Spec.Selector, e) }
		if slices.ContainsFunc(changed[s.Namespace], selects) {
			units[unit{state.Services, s.Namespace + "/" + s.Name}] = true
		}
	}
}

// setEntry puts an entry in place of the one with that name; nil takes it away.
func (p *publication) setEntry(namespace, name string, e *workloadentry.Entry) {
	switch {
	case e == nil:
		delete(p.entries[namespace], name)
	case p.entries[namespace] == nil:
		p.entries[namespace] = entriesIn{name: e}
	default:
		p.entries[namespace][name] = e
	}
}

// entryNow is the entry with a key; nil: there is none that counts. One that can't be used leaves
// the version before it.
func (p *publication) entryNow(key string, before *workloadentry.Entry) *workloadentry.Entry {
	i := p.watched.entries.informer()
	if i == nil {
		return nil
	}
	is := get[entry](i, key)
	if is == nil || !p.config.concerns(is.Labels) || !p.counts(is.Namespace) {
		return nil
	}
	if is.wrong != nil {
		p.out.Log(sdk.Warn, "a WorkloadEntry can't be used; the version before it counts, if there was one",
			"cluster", p.config.Cluster, "entry", key, "error", is.wrong.Error())
		return before
	}
	return is.is
}

// concerns reports whether an entry with these labels is of this revision.
// Source: Istio, "Canary upgrades": the label istio.io/rev.
func (c *Config) concerns(labels map[string]string) bool {
	revision, given := labels["istio.io/rev"]
	return !given || c.Revision == "" || revision == c.Revision
}

// selects reports whether a selector of a service finds the workload.
func (p *publication) selects(selector map[string]string, e *workloadentry.Entry) bool {
	return e != nil && len(e.Labels) > 0 && istio.ServiceSelects(selector,
		hosts.Augmented(e.Labels, hosts.Locality(e.Spec.Locality, e.Labels), p.config.Cluster, e.Spec.Network, ""))
}

// entryRow is the row of an entry in table workloads.
func (p *publication) entryRow(key string) map[string]map[string]*sdk.Row {
	namespace, name, _ := strings.Cut(key, "/")
	e := p.entries[namespace][name]
	if e == nil {
		return nil
	}
	w := &pb.Workload{
		Name: e.Name, Namespace: e.Namespace, Labels: e.Labels, ServiceAccount: e.Spec.ServiceAccount,
		Network: e.Spec.Network, Locality: hosts.Locality(e.Spec.Locality, e.Labels),
		Weight: e.Spec.Weight, Ports: e.Spec.Ports, Cluster: p.config.Cluster,
		TlsMode: hosts.TLSMode(e.Labels, e.Spec.ServiceAccount), Workload: e.Known, Ready: true,
	}
	if a := workloadentry.Address(e.Spec); a != "" {
		w.Addresses = []string{a}
	}
	row := sdk.WorkloadRow(w)
	row.Key = workloadentry.RemoteKey(e.Namespace, e.Name, p.config.Cluster)
	return one(state.Workloads, row)
}

// entryEndpoints are the endpoints that WorkloadEntries of the cluster are for a service, behind
// those of its slices, in order of the entries' names.
func (p *publication) entryEndpoints(s *pb.Service) (out []*pb.Endpoint) {
	if !p.config.WorkloadEntries.Services || !workloadentry.SelectsEntries(s) {
		return nil
	}
	in := p.entries[s.Namespace]
	for _, name := range slices.Sorted(maps.Keys(in)) {
		e := in[name]
		if !workloadentry.Selectable(e.Spec) || !p.selects(s.Selector, e) {
			continue
		}
		for _, port := range s.Ports {
			at, ok := workloadentry.ClusterPort(e.Spec, port)
			if !ok {
				continue
			}
			out = append(out, &pb.Endpoint{
				Host: s.Host, Namespace: s.Namespace, PortName: port.Name, ServicePort: port.Number,
				Address: e.Spec.Address, Port: at, Labels: e.Labels, Cluster: p.config.Cluster,
				Network: e.Spec.Network, Locality: hosts.Locality(e.Spec.Locality, e.Labels),
				Weight: e.Spec.Weight, ServiceAccount: e.Spec.ServiceAccount,
				TlsMode:  hosts.TLSMode(e.Labels, e.Spec.ServiceAccount),
				Workload: e.Known, Index: math.MaxUint32,
			})
		}
	}
	return out
}
