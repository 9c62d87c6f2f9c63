package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
	policytypes "istio.io/api/type/v1beta1"
)

const (
	noWorkloads      = "IST0127"
	sidecarClash     = "IST0110"
	manySidecars     = "IST0111"
	telemetryClash   = "IST0159"
	manyTelemetries  = "IST0160"
	shadowedPeerAuth = "COX3006"
	gatewaySelector  = "IST0166"
	noEffect         = "IST0167"
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

// unmatchedSelectors finds selectors that select no workload that is known, where any is: where
// Pods are known these are all that run. Policies are for pods that have a proxy.
func unmatchedSelectors(w *world) {
	meshed := w.meshed()
	for _, s := range w.selections() {
		namespace, known := s.Namespace, w.pods || len(w.peopled[s.Namespace]) > 0
		if s.everywhere {
			namespace, known = "", w.pods || w.hasKeys(s.labels)
		}
		found := w.matches(namespace, s.labels)
		if _, policy := s.Spec.(*security.AuthorizationPolicy); policy && found && meshed != nil {
			found = meshed(namespace, s.labels)
		}
		if !known || found {
			continue
		}
		switch s.Spec.(type) {
		case *networking.Gateway, *networking.Sidecar, *telemetry.Telemetry:
			w.report(s.Resource, finding.Warnf(notFound, s.at, "Referenced selector not found: %q", show(s.labels)).WithHint("no workload has these labels"))
		default:
			w.report(s.Resource, finding.Warnf(noWorkloads, s.at, "No matching workloads for this resource with the following labels: %s", show(s.labels)))
		}
	}
	if meshed == nil {
		return
	}
	for _, p := range of[*security.AuthorizationPolicy](w) {
		whole := len(p.spec.Selector.GetMatchLabels()) == 0 && p.spec.TargetRef == nil && len(p.spec.TargetRefs) == 0
		if whole && p.Namespace != w.root() && !meshed(p.Namespace, nil) {
			w.report(p.Resource, finding.Warnf(noWorkloads, "metadata.namespace", "No matching workloads for this resource: its namespace has none"))
		}
	}
}

// meshed returns what reports whether a selector selects a workload that policies are for in a
// namespace, or in all; nil: Pods are not known.
func (w *world) meshed() func(namespace string, selector map[string]string) bool {
	if !w.pods {
		return nil
	}
	outside := map[string]bool{}
	for _, p := range w.objectsOf(kindPod) {
		if !w.inMesh(p) && !isAmbient(p) {
			outside[fullOf(p)] = true
		}
	}
	return func(namespace string, selector map[string]string) bool {
		for i := range w.selected(namespace, selector) {
			if each := &w.workloads[i]; !each.pod || !outside[each.Namespace+"/"+each.Name] {
				return true
			}
		}
		return false
	}
}

// hasKeys reports whether some workload has the keys of a selector: then those that it is for are
// probably known.
func (w *world) hasKeys(selector map[string]string) bool {
	for key := range selector {
		if !w.keys[key] {
			return false
		}
	}
	return slices.ContainsFunc(w.workloads, func(each Workload) bool {
		for key := range selector {
			if _, ok := each.Labels[key]; !ok {
				return false
			}
		}
		return true
	})
}

// policyNamespaces finds namespaces that policies name and that aren't there, where all are known.
func policyNamespaces(w *world) {
	if !w.pods || len(w.namespaces) == 0 {
		return
	}
	for _, p := range of[*security.AuthorizationPolicy](w) {
		for i, rule := range p.spec.Rules {
			for j, from := range rule.GetFrom() {
				s := from.GetSource()
				for field, list := range map[string][]string{"namespaces": s.GetNamespaces(), "notNamespaces": s.GetNotNamespaces()} {
					for k, name := range list {
						if !w.hasNamespace(name) {
							w.report(p.Resource, missing(fmt.Sprintf("spec.rules[%d].from[%d].source.%s[%d]", i, j, field, k), "namespace", name))
						}
					}
				}
			}
		}
	}
}

// hasNamespace reports whether a namespace has a name, which may begin or end with a wildcard.
func (w *world) hasNamespace(name string) bool {
	end, suffix := strings.CutPrefix(name, "*")
	start, prefix := strings.CutSuffix(name, "*")
	if !suffix && !prefix {
		return w.namespaces[strings.ToLower(name)] != nil
	}
	for each := range w.namespaces {
		if suffix && strings.HasSuffix(each, end) || prefix && strings.HasPrefix(each, start) {
			return true
		}
	}
	return false
}

// gatewaySelectors finds policies whose selector selects the pods of a Gateway of the Gateway API.
func gatewaySelectors(w *world) {
	const gatewayName = "gateway.networking.k8s.io/gateway-name"
	for _, s := range w.selections() {
		m, ok := s.Spec.(interface {
			GetTargetRef() *policytypes.PolicyTargetReference
			GetTargetRefs() []*policytypes.PolicyTargetReference
		})
		if !ok || m.GetTargetRef() != nil || len(m.GetTargetRefs()) > 0 {
			continue
		}
		for i := range w.selected(s.Namespace, s.labels) {
			if name, ok := w.workloads[i].Labels[gatewayName]; ok && w.workloads[i].pod {
				w.report(s.Resource, finding.Warnf(gatewaySelector, s.at, "it selects pods of the Gateway %s, for which istiod may take no selector", name).
					WithHint("name the Gateway in targetRefs"))
				break
			}
		}
	}
}

// ambientSidecars finds Sidecars for pods that have no proxy of their own, as their connections are
// carried otherwise.
func ambientSidecars(w *world) {
	ambient := map[string]bool{}
	for _, p := range w.objectsOf(kindPod) {
		if isAmbient(p) {
			ambient[fullOf(p)] = true
		}
	}
	for _, s := range of[*networking.Sidecar](w) {
		labels := s.spec.WorkloadSelector.GetLabels()
		if len(labels) == 0 {
			n := w.namespaces[s.Namespace]
			if n != nil && n.Labels[dataplaneLabel] == ambientMode && n.Labels[injectionLabel] != injectionOn && n.Labels[revisionLabel] == "" {
				w.report(s.Resource, finding.Warnf(noEffect, "metadata.namespace", "it has no effect: its namespace is in ambient mode"))
			}
			continue
		}
		for i := range w.selected(s.Namespace, labels) {
			if each := &w.workloads[i]; each.pod && ambient[each.Namespace+"/"+each.Name] {
				w.report(s.Resource, finding.Warnf(noEffect, "spec.workloadSelector", "it has no effect on %s, which is in ambient mode", each.Name))
				break
			}
		}
	}
}

// unservedTargets finds policies that are attached to a Gateway of the Gateway API whose class
// nobody serves. What they say of other kinds is told of each by itself.
func unservedTargets(w *world) {
	for _, r := range w.resources {
		refs, field := kinds.Targets(r.Spec)
		at, why, unserved := "", "", 0
		for i, ref := range refs {
			of := ""
			if ref.GetKind() == "Gateway" && ref.GetGroup() == gatewayapi.Group {
				of = w.unservedGateways[kinds.Key(r.Namespace, ref.GetName())]
			}
			if of != "" && why == "" {
				at, why = kinds.TargetField(field, i), fmt.Sprintf("it is attached to the Gateway %s, which nobody serves: %s", ref.GetName(), of)
			}
			if of != "" || kinds.UnservedTarget(ref) != "" {
				unserved++
			}
		}
		if why != "" {
			w.report(r, finding.Warnf(kinds.UnservedCode(unserved == len(refs)), at, "%s", why))
		}
	}
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
		clash(w, general, func(names string) finding.Finding {
			return finding.Errorf(many, "metadata.name", "The %s [%s] in namespace %q have no workload selector, "+
				"which can lead to undefined behavior", plural, names, namespace).
				WithHint("the oldest counts; keep one")
		})
		for _, workload := range w.matching(namespace, nil) {
			var same []*Resource
			for _, s := range by[namespace] {
				if istio.ServiceSelects(s.labels, workload.Labels) {
					same = append(same, s.Resource)
				}
			}
			clash(w, same, func(names string) finding.Finding {
				return finding.Errorf(both, at, "The %s [%s] in namespace %q select the same workload pod %q, which "+
					"can lead to undefined behavior", plural, names, namespace, workload.Name).
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
		clash(w, by[key], func(names string) finding.Finding {
			return finding.Warnf(shadowedPeerAuth, "metadata.name", "PeerAuthentications %s are all for %s; only "+
				"the oldest counts", names, scope).WithHint("keep one")
		})
	}
}
