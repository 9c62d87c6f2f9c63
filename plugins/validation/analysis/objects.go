package analysis

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Kinds of Kubernetes' objects.
const (
	kindConfigMap  = "ConfigMap"
	kindDefinition = "CustomResourceDefinition"
	kindDeployment = "Deployment"
	kindMutating   = "MutatingWebhookConfiguration"
	kindNamespace  = "Namespace"
	kindNode       = "Node"
	kindPod        = "Pod"
	kindSecret     = "Secret"
	kindService    = "Service"
	kindValidating = "ValidatingWebhookConfiguration"
)

// podSpec is as much of a pod as is looked at.
type podSpec struct {
	SecurityContext securityContext `yaml:"securityContext"`
	Containers      []container
	InitContainers  []container `yaml:"initContainers"`
	HostNetwork     bool        `yaml:"hostNetwork"`
	NodeName        string      `yaml:"nodeName"`
}

type container struct {
	Name, Image     string
	SecurityContext securityContext `yaml:"securityContext"`
}

type securityContext struct {
	RunAsUser int64 `yaml:"runAsUser"`
}

// proxyName is the name of the container that a proxy runs in.
const proxyName = "istio-proxy"

// proxyImage returns the image of a pod's proxy; empty: it has none.
func (p *podSpec) proxyImage() string {
	for _, list := range [][]container{p.Containers, p.InitContainers} {
		for _, c := range list {
			if c.Name == proxyName {
				return c.Image
			}
		}
	}
	return ""
}

// serviceSpec is as much of a Service as is looked at.
type serviceSpec struct {
	Type      string
	ClusterIP string `yaml:"clusterIP"`
	Selector  map[string]string
	Ports     []servicePort
}

type servicePort struct {
	Name, Protocol string
	AppProtocol    string `yaml:"appProtocol"`
	Port           uint32
	// TargetPort is a number or a name, as text.
	TargetPort yaml.Node `yaml:"targetPort"`
}

// target returns where a port leads, as text: a number or a name.
func (p *servicePort) target() string {
	if text := p.TargetPort.Value; text != "0" {
		return text
	}
	return ""
}

// webhook is one of a MutatingWebhookConfiguration, or of a validating one.
type webhook struct {
	Name         string
	ClientConfig struct {
		URL     *string
		Service *struct{ Name, Namespace string }
	} `yaml:"clientConfig"`
	NamespaceSelector *labelSelector `yaml:"namespaceSelector"`
	ObjectSelector    *labelSelector `yaml:"objectSelector"`
}

// labelSelector is a LabelSelector of Kubernetes.
type labelSelector struct {
	MatchLabels      map[string]string `yaml:"matchLabels"`
	MatchExpressions []struct {
		Key, Operator string
		Values        []string
	} `yaml:"matchExpressions"`
}

// selector returns what a LabelSelector selects; nil selects everything, and one that is none
// nothing, as for an API server's webhooks.
func (s *labelSelector) selector() labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	of := metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		of.MatchExpressions = append(of.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(&of)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// definition is as much of a CustomResourceDefinition as is looked at.
type definition struct {
	Group string
	Names struct{ Kind string }
}

// condition is one of an object's status.
type condition struct{ Type, Status, Reason, Message string }

// looked are the kinds of Kubernetes' objects that are looked at themselves, with the version that
// counts, and whether they are in no namespace.
var looked = map[string]struct {
	version string
	cluster bool
}{
	kindConfigMap: {"v1", false}, kindDefinition: {"apiextensions.k8s.io/v1", true}, kindDeployment: {"apps/v1", false},
	kindMutating: {"admissionregistration.k8s.io/v1", true}, kindNamespace: {"v1", true}, kindNode: {"v1", true},
	kindPod: {"v1", false}, kindSecret: {"v1", false}, kindService: {"v1", false},
	kindValidating: {"admissionregistration.k8s.io/v1", true},
}

// annotated are the kinds of Kubernetes' objects whose annotations are looked at.
var annotated = map[string]bool{kindDeployment: true, kindNamespace: true, kindPod: true, kindService: true}

// addObject takes an object of Kubernetes as one to look at.
func (r *Reader) addObject(o *object, namespace string, node *yaml.Node) {
	kind, ok := looked[o.Kind]
	if !ok || kind.version != o.APIVersion {
		return
	}
	group, version, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		group, version = "", o.APIVersion
	}
	if kind.cluster {
		namespace = ""
	}
	at := Resource{
		Resource: finding.Resource{
			Group: group, Version: version, Kind: o.Kind, Namespace: namespace, Name: o.Metadata.Name,
			Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations, Node: node,
		},
		File: r.file, Line: node.Line, Column: node.Column,
	}
	var of struct {
		Spec     yaml.Node
		Webhooks []webhook
		Data     yaml.Node
		Strings  yaml.Node `yaml:"stringData"`
	}
	_ = node.Decode(&of) // what has another form is not looked at
	switch o.Kind {
	case kindPod:
		at.pod, at.podAt, at.podLabels, at.podAnnotations = &podSpec{}, "spec", at.Labels, at.Annotations
		_ = of.Spec.Decode(at.pod)
	case kindDeployment:
		var d struct {
			Template struct {
				Metadata struct{ Labels, Annotations map[string]string }
				Spec     podSpec
			}
		}
		_ = of.Spec.Decode(&d)
		at.pod, at.podAt = &d.Template.Spec, "spec.template.spec"
		at.podLabels, at.podAnnotations = d.Template.Metadata.Labels, d.Template.Metadata.Annotations
	case kindService:
		at.service = &serviceSpec{}
		_ = of.Spec.Decode(at.service)
	case kindMutating, kindValidating:
		at.webhooks = of.Webhooks
	case kindDefinition:
		at.definition = &definition{}
		_ = of.Spec.Decode(at.definition)
	case kindConfigMap:
		if !strings.HasPrefix(o.Metadata.Name, "istio") {
			return // application's
		}
		_ = of.Data.Decode(&at.data)
	case kindSecret:
		if o.Metadata.Labels[multiCluster] != "true" {
			return
		}
		at.data = keysOf(&of.Data, &of.Strings)
	}
	at.readConditions()
	r.Input.Resources = append(r.Input.Resources, at)
}

// keysOf returns the keys of mappings, without their values.
func keysOf(mappings ...*yaml.Node) map[string]string {
	keys := map[string]string{}
	for _, m := range mappings {
		var of map[string]yaml.Node
		_ = m.Decode(&of)
		for key := range of {
			keys[key] = ""
		}
	}
	return keys
}

// readConditions takes the conditions of an object's status, and those that it has of its parents.
func (r *Resource) readConditions() {
	if r.Node == nil {
		return
	}
	node := protoyaml.Child(r.Node, "status")
	if node == nil {
		return
	}
	var status struct {
		Conditions []condition
		Parents    []struct{ Conditions []condition }
		Addresses  []yaml.Node
	}
	_ = node.Decode(&status)
	r.conditions, r.allocated = status.Conditions, len(status.Addresses) > 0
	for _, p := range status.Parents {
		r.conditions = append(r.conditions, p.Conditions...)
	}
}

// objectsOf returns the objects of a kind of Kubernetes, in order.
func (w *world) objectsOf(kind string) []*Resource { return w.objects[kind] }

// fullOf names an object: NAMESPACE/NAME, or the name alone.
func fullOf(r *Resource) string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// inMesh reports whether a pod has a proxy, or is to have one: its labels say so, or else its
// annotations, or else its namespace. Source: Istio, "Installing the Sidecar", controlling the
// injection policy.
func (w *world) inMesh(r *Resource) bool {
	if r.pod.proxyImage() != "" {
		return true
	}
	for _, of := range []map[string]string{r.podLabels, r.podAnnotations} {
		if v, ok := of[injectLabel]; ok {
			return v == "true"
		}
	}
	n := w.namespaces[cmp.Or(r.Namespace, "default")]
	return n != nil && n.Labels[injectionLabel] == injectionOn
}

// isAmbient reports whether a pod's connections are carried without a proxy of its own.
func isAmbient(r *Resource) bool { return r.podAnnotations[ambientAnnotation] == injectionOn }

// Labels and annotations by which workloads join a mesh. Source: istio.io/api/label and annotation.
const (
	injectLabel       = "sidecar.istio.io/inject"
	injectionLabel    = "istio-injection"
	injectionOn       = "enabled"
	revisionLabel     = "istio.io/rev"
	dataplaneLabel    = "istio.io/dataplane-mode"
	ambientMode       = "ambient"
	ambientAnnotation = "ambient.istio.io/redirection"
	multiCluster      = "istio/multiCluster"
)
