package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

const (
	noWorkloads      = "IST0127"
	sidecarClash     = "IST0110"
	manySidecars     = "IST0111"
	telemetryClash   = "IST0159"
	manyTelemetries  = "IST0160"
	shadowedPeerAuth = "COX3006"
)

// selection is what a resource applies to within its namespace.
type selection struct {
	*Resource
	at     string
	labels map[string]string
	// everywhere says that it selects workloads of all namespaces.
	everywhere bool
}

// selections returns what each resource with a selector selects.
func (w *world) selections() (list []selection) {
	for _, r := range w.resources {
		s := selection{Resource: r, at: "spec.selector", everywhere: r.Namespace == w.root()}
		switch m := r.Spec.(type) {
		case *networking.Gateway:
			s.labels, s.everywhere = m.Selector, true
		case *networking.Sidecar:
			s.at, s.labels, s.everywhere = "spec.workloadSelector", m.WorkloadSelector.GetLabels(), false
		case *networking.EnvoyFilter:
			s.at, s.labels = "spec.workloadSelector", m.WorkloadSelector.GetLabels()
		case *networking.ServiceEntry:
			s.at, s.labels, s.everywhere = "spec.workloadSelector", m.WorkloadSelector.GetLabels(), false
		case *security.AuthorizationPolicy:
			s.labels = m.Selector.GetMatchLabels()
		case *security.RequestAuthentication:
			s.labels = m.Selector.GetMatchLabels()
		case *security.PeerAuthentication:
			s.labels, s.everywhere = m.Selector.GetMatchLabels(), false
		case *telemetry.Telemetry:
			s.labels = m.Selector.GetMatchLabels()
		case *extensions.WasmPlugin:
			s.labels = m.Selector.GetMatchLabels()
		case *extensions.TrafficExtension:
			s.labels = m.Selector.GetMatchLabels()
		}
		if len(s.labels) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// unmatchedSelectors finds selectors that select no workload that is known, where any is.
func unmatchedSelectors(w *world) {
	for _, s := range w.selections() {
		namespace, known := s.Namespace, w.peopled[s.Namespace]
		if s.everywhere {
			namespace, known = "", w.labelled(s.labels)
		}
		if known && len(w.matching(namespace, s.labels)) == 0 {
			w.report(s.Resource, finding.Warnf(noWorkloads, s.at, "No matching workloads for this resource with the following labels: %s", show(s.labels)))
		}
	}
}

// labelled reports whether some workload has the keys of a selector: then those that it is for are
// probably known.
func (w *world) labelled(selector map[string]string) bool {
	return slices.ContainsFunc(w.workloads, func(each Workload) bool {
		for key := range selector {
			if _, ok := each.Labels[key]; !ok {
				return false
			}
		}
		return true
	})
}

// scoped is a resource of which a workload gets one.
type scoped struct {
	*Resource
	labels map[string]string
}

// rivals reports resources of a namespace of which there may be one without a selector, and one for
// each workload.
func rivals(w *world, list []scoped, plural, many, both, at string) {
	by := map[string][]scoped{}
	for _, s := range list {
		by[s.Namespace] = append(by[s.Namespace], s)
	}
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		var general []*Resource
		for _, s := range by[namespace] {
			if len(s.labels) == 0 {
				general = append(general, s.Resource)
			}
		}
		clash(w, general, many, func(names string) finding.Finding {
			return finding.Errorf(many, "metadata.name", "The %s [%s] in namespace %q have no workload selector, which can lead to undefined behavior", plural, names, namespace).
				WithHint("the oldest counts; keep one")
		})
		for _, workload := range w.matching(namespace, nil) {
			var same []*Resource
			for _, s := range by[namespace] {
				if istio.ServiceSelects(s.labels, workload.Labels) {
					same = append(same, s.Resource)
				}
			}
			clash(w, same, both, func(names string) finding.Finding {
				return finding.Errorf(both, at, "The %s [%s] in namespace %q select the same workload pod %q, which can lead to undefined behavior", plural, names, namespace, workload.Name).
					WithHint("the oldest counts; make the selectors exclude each other")
			})
		}
	}
}

// sidecars finds Sidecars that shadow each other.
func sidecars(w *world) {
	var list []scoped
	for _, s := range of[*networking.Sidecar](w) {
		list = append(list, scoped{s.Resource, s.spec.WorkloadSelector.GetLabels()})
	}
	rivals(w, list, "Sidecars", manySidecars, sidecarClash, "spec.workloadSelector")
}

// telemetries finds Telemetries that shadow each other.
func telemetries(w *world) {
	var list []scoped
	for _, t := range of[*telemetry.Telemetry](w) {
		if t.spec.TargetRef == nil && len(t.spec.TargetRefs) == 0 {
			list = append(list, scoped{t.Resource, t.spec.Selector.GetMatchLabels()})
		}
	}
	rivals(w, list, "Telemetries", manyTelemetries, telemetryClash, "spec.selector")
}

// peerPolicies finds PeerAuthentications of a namespace, or of the mesh, of which only the oldest
// counts.
func peerPolicies(w *world) {
	by := map[string][]*Resource{}
	for _, p := range of[*security.PeerAuthentication](w) {
		key := p.Namespace + " " + show(p.spec.Selector.GetMatchLabels())
		by[key] = append(by[key], p.Resource)
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		namespace, labels, _ := strings.Cut(key, " ")
		scope := fmt.Sprintf("namespace %s", namespace)
		if namespace == w.root() && labels == "" {
			scope = "the mesh"
		}
		if labels != "" {
			scope += " with " + labels
		}
		clash(w, by[key], shadowedPeerAuth, func(names string) finding.Finding {
			return finding.Warnf(shadowedPeerAuth, "metadata.name", "PeerAuthentications %s are all for %s; only the oldest counts", names, scope).WithHint("keep one")
		})
	}
}
