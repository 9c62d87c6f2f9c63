package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
)

// Other is an object of which only what says whose it is was kept.
type Other struct {
	Kind, Namespace, Name string
	// labels are those of a Namespace, template is the pods' of a workload.
	labels   map[string]string
	template *corev1.PodTemplateSpec
	// role and subjects are of a binding; target is what an autoscaler scales; selector has the
	// pods of a NetworkPolicy or a PodDisruptionBudget.
	role     rbacv1.RoleRef
	subjects []rbacv1.Subject
	target   struct{ Kind, Name string }
	selector *metav1.LabelSelector
}

// Workload is a workload other than a Deployment.
func Workload(kind string, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) Other {
	return Other{Kind: kind, Namespace: meta.Namespace, Name: meta.Name, template: &template}
}

// OfNamespace is a Namespace.
func OfNamespace(n *corev1.Namespace) Other {
	return Other{Kind: "Namespace", Name: n.Name, labels: n.Labels}
}

// read takes of an object what counts for its kind.
func (o *Other) read(group string, raw []byte) error {
	var is struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
		Spec     struct {
			ScaleTargetRef        struct{ Kind, Name string }
			Selector, PodSelector *metav1.LabelSelector
			Template              *corev1.PodTemplateSpec
		}
	}
	switch group + " " + o.Kind {
	case "rbac.authorization.k8s.io RoleBinding", "rbac.authorization.k8s.io ClusterRoleBinding",
		"autoscaling HorizontalPodAutoscaler", "policy PodDisruptionBudget", "networking.k8s.io NetworkPolicy",
		"apps DaemonSet", "apps StatefulSet":
	default:
		return nil
	}
	if json.Unmarshal(raw, &is) != nil {
		return fmt.Errorf("%s/%s is not as its kind is", o.Kind, o.Name)
	}
	switch o.Kind {
	case "DaemonSet", "StatefulSet":
		o.template = is.Spec.Template
	case "NetworkPolicy":
		o.selector = is.Spec.PodSelector
	case "PodDisruptionBudget":
		o.selector = is.Spec.Selector
	}
	o.role, o.subjects, o.target = is.RoleRef, is.Subjects, is.Spec.ScaleTargetRef
	return nil
}

// named is what a report calls an object.
func (m *maker) named(kind, namespace, name string) string {
	if namespace == "" || namespace == m.Namespace {
		return kind + "/" + name
	}
	return kind + "/" + name + " of " + namespace
}

// others are all other objects: of what is istiod's own it is said what takes its place, and what
// is not stays.
func (m *maker) others() {
	roles := m.roles()
	for _, o := range m.in.Others {
		what := m.named(o.Kind, o.Namespace, o.Name)
		switch o.Kind {
		case "ServiceAccount":
			text := "it is not istiod's account, and stays as it is"
			if o.Name == m.account() && m.here(o.Namespace) {
				text = "rights.yaml makes an account of its own"
			}
			m.out(what, Same, "%s", text)
		case "ClusterRoleBinding", "RoleBinding":
			m.out(what, Same, "%s", m.binds(o).text())
		case "ClusterRole", "Role":
			m.out(what, Same, "%s", roles[key(o.Kind, m.space(o.Namespace), o.Name)].text())
		case "HorizontalPodAutoscaler":
			m.replaced(what, "the chart makes one (autoscaleEnabled)",
				o.target.Kind == "Deployment" && o.target.Name == m.of.Name && m.here(o.Namespace))
		case "PodDisruptionBudget":
			m.replaced(what, "the chart makes one (pdb)", m.selected(o))
		case "NetworkPolicy":
			m.replaced(what, "the chart makes one (global.networkPolicy)", m.selected(o))
		case "CustomResourceDefinition", "Namespace":
			m.out(what, Same, "it stays")
		case "Secret":
			m.out(what, Same, "it is not read; what proxies and the CA use of it goes on")
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			m.out(what, Same, "the API server itself keeps to it; it goes with istiod's release")
		default:
			m.workload(what, o.Namespace, o.template)
		}
	}
	for _, d := range m.in.Deployments {
		if d != m.of {
			m.workload(m.named("Deployment", d.Namespace, d.Name), d.Namespace, &d.Spec.Template)
		}
	}
	if len(m.of.OwnerReferences) > 0 {
		m.out("Deployment/"+m.of.Name, Differs, "an operator owns it, and may change it back: take istiod out of the operator's hands first")
	}
}

// space is a namespace, which is the control plane's where an object says none.
func (m *maker) space(namespace string) string { return cmp.Or(namespace, m.Namespace) }

// here reports whether a namespace is the control plane's.
func (m *maker) here(namespace string) bool { return m.space(namespace) == m.Namespace }

// account is the service account of istiod's pods; empty: that of all pods that name none.
func (m *maker) account() string {
	spec := m.of.Spec.Template.Spec
	return cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount)
}

// replaced says what is made in an object's place, if it is about istiod's pods.
func (m *maker) replaced(what, made string, istiods bool) {
	if !istiods {
		made = "it is not about istiod's pods, and stays as it is"
	}
	m.out(what, Same, "%s", made)
}

// selected reports whether an object selects istiod's pods, by their labels: one that selects all
// pods is not istiod's.
func (m *maker) selected(o Other) bool {
	s, err := metav1.LabelSelectorAsSelector(o.selector)
	return err == nil && !s.Empty() && m.here(o.Namespace) && s.Matches(labels.Set(m.of.Spec.Template.Labels))
}

// bound says to whom rights are given.
type bound int

// To nobody who was read, to others, to istiod's account, and to both.
const (
	toNobody bound = iota
	toOthers
	toIstiod
	toBoth
)

func (b bound) text() string {
	return map[bound]string{
		toNobody: "no binding that was read gives it to istiod's account: it stays as it is",
		toOthers: "istiod's account does not have it: it stays as it is",
		toIstiod: "rights.yaml has the least that do",
		toBoth:   "rights.yaml has the least that do in istiod's place; others have it, too: for them it stays",
	}[b]
}

// and is to whom two bindings give the same rights.
func (b bound) and(o bound) bound { return b | o }

// binds says to whom a binding gives rights.
func (m *maker) binds(o Other) (to bound) {
	for _, s := range o.subjects {
		if s.Kind == rbacv1.ServiceAccountKind && s.Name == m.account() && cmp.Or(s.Namespace, m.space(o.Namespace)) == m.Namespace {
			to = to.and(toIstiod)
		} else {
			to = to.and(toOthers)
		}
	}
	return to
}

// roles says who has which role, by its key.
func (m *maker) roles() map[string]bound {
	all := map[string]bound{}
	for _, o := range m.in.Others {
		if o.Kind == "RoleBinding" || o.Kind == "ClusterRoleBinding" {
			k := key(o.role.Kind, m.space(o.Namespace), o.role.Name)
			all[k] = all[k].and(m.binds(o))
		}
	}
	return all
}

// key names a role; one of the cluster has no namespace.
func key(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + "/" + namespace + "/" + name
}

// workload says what becomes of pods of a workload (nil: the object is none): where no pod is asked
// about here, those that istiod injects into would come back without their proxies.
func (m *maker) workload(what, namespace string, pods *corev1.PodTemplateSpec) {
	namespace = m.space(namespace)
	apart := webhooks.Config{Namespace: m.Namespace}.Apart()
	by := ""
	if pods != nil && slices.Contains(apart, namespace) {
		by = m.asks(namespace, pods)
	}
	if by == "" {
		m.out(what, Same, "it is not this istiod's, and stays as it is")
		return
	}
	m.out(what, Differs, "its pods ask for injection (%s), and no pod of %s is injected into here: the next one would have no "+
		"proxy, or not start; move it to another namespace first", by, namespace)
}

// injectLabel asks for a proxy, or refuses it, as a label or an annotation of pods; templatesNote
// names templates.
const (
	injectLabel   = "sidecar.istio.io/inject"
	templatesNote = "inject.istio.io/templates"
)

// asks says by what pods get a proxy of istiod's; empty: they get none. Source: Istio, "Controlling
// the injection policy"; pods in the node's network get none.
func (m *maker) asks(namespace string, pods *corev1.PodTemplateSpec) string {
	if pods.Spec.HostNetwork {
		return ""
	}
	if said := cmp.Or(pods.Labels[injectLabel], pods.Annotations[injectLabel]); said == "true" {
		return injectLabel + ": true"
	} else if said != "" {
		return ""
	}
	if pods.Annotations[templatesNote] != "" {
		return templatesNote
	}
	if slices.ContainsFunc(pods.Spec.Containers, func(c corev1.Container) bool { return c.Image == "auto" }) {
		return "image: auto"
	}
	if pods.Labels[webhooks.RevisionLabel] != "" {
		return "label " + webhooks.RevisionLabel
	}
	for _, o := range m.in.Others {
		if o.Kind == "Namespace" && o.Name == namespace && (o.labels["istio-injection"] == "enabled" || o.labels[webhooks.RevisionLabel] != "") {
			return "labels of the namespace"
		}
	}
	if m.everywhere && m.here(namespace) {
		return "istiod injects into pods of all namespaces"
	}
	return ""
}
