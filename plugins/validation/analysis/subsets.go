package analysis

import (
	"fmt"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// ofNodes are the labels that endpoints have from the nodes of their pods, where these say
// something. Source: Istio, "Locality Load Balancing".
var ofNodes = []string{"kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"}

// subsetsWithoutPods finds subsets that select no pod of their service, where Pods are known.
func subsetsWithoutPods(w *world) {
	if !w.pods {
		return
	}
	nodes := map[string]map[string]string{}
	for _, n := range w.objectsOf(kindNode) {
		nodes[n.Name] = n.Labels
	}
	for _, d := range of[*networking.DestinationRule](w) {
		services := w.lookup(d.spec.Host, d.Namespace)
		if len(services) == 0 {
			continue // that is said
		}
		for i, s := range d.spec.Subsets {
			if len(s.GetLabels()) > 0 && !slices.ContainsFunc(services, func(of Service) bool { return w.hasSubset(of, s.GetLabels(), nodes) }) {
				w.report(d.Resource, finding.Errorf(emptySubset, fmt.Sprintf("spec.subsets[%d].labels", i),
					"The Subset %s defined in the DestinationRule does not select any pods (%s)", s.GetName(), show(s.GetLabels())).
					WithHint("requests to it get 503 (UH) until there is one"))
			}
		}
	}
}

// hasSubset reports whether a service has a workload with these labels, which may be those of its
// node.
func (w *world) hasSubset(s Service, labels map[string]string, nodes map[string]map[string]string) bool {
	own, local := maps.Clone(labels), map[string]string{}
	for _, k := range ofNodes {
		if v, ok := own[k]; ok {
			local[k] = v
			delete(own, k)
		}
	}
	for i := range w.selected(s.Namespace, s.Selector) {
		each := &w.workloads[i]
		node := nodes[each.node]
		if istio.Selects(own, each.Labels) && !slices.ContainsFunc(slices.Collect(maps.Keys(local)), func(k string) bool {
			return each.Labels[k] != local[k] && node[k] != local[k] || local[k] == ""
		}) {
			return true
		}
	}
	return false
}
