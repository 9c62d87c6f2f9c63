package render

import (
	"slices"

	"istio.io/api/annotation"
	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// never are namespaces without which a cluster can't start: nothing is injected there, as with
// istiod.
var never = []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease", "local-path-storage"}

// Required reports whether a pod is to get a proxy; if not, why.
func (s *Settings) Required(pod *corev1.Pod, namespace string) (yes bool, why string) {
	switch {
	case pod.Spec.HostNetwork:
		return false, "it has host networking enabled"
	case slices.Contains(never, namespace):
		return false, "nothing is injected in namespace " + namespace
	}
	asked := pod.Annotations[annotation.SidecarInject.Name]
	if l, ok := pod.Labels[label.SidecarInject.Name]; ok {
		asked = l
	}
	switch asked {
	case "true":
		return true, ""
	case "false":
		return false, "it has sidecar injection disabled"
	}
	has := labels.Set(pod.Labels)
	matches := func(l labels.Selector) bool { return l.Matches(has) }
	switch {
	case slices.ContainsFunc(s.never, matches):
		return false, "neverInjectSelector matches its labels"
	case slices.ContainsFunc(s.always, matches):
		return true, ""
	}
	return s.config.Policy == Enabled, "the policy is " + s.config.Policy
}
