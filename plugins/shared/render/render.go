package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"istio.io/api/annotation"
	"istio.io/api/label"
	mesh "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Request is a pod that is to get a proxy.
type Request struct {
	// Pod is the pod, or what pods of a workload are made of; it stays as it is.
	Pod *corev1.Pod
	// Of and Kind say what the pod is part of.
	Of   types.NamespacedName
	Kind metav1.TypeMeta
	// Mesh are the mesh's settings, Proxy the proxy's own.
	Mesh  *mesh.MeshConfig
	Proxy *mesh.ProxyConfig
	// Native is whether the proxy is an init container that goes on running, where the pod does not
	// say.
	Native bool
	// Revision is the control plane's; empty: the default one.
	Revision string
	// Env are variables that the proxy gets, whatever the template says.
	Env map[string]string
	// User and Group are those that the proxy runs as; 0: Istio's.
	User, Group int64
	// Compliance is a policy that agents keep to (COMPLIANCE_POLICY); empty: none.
	Compliance string
}

// mostAsked is how many templates a pod may name.
const mostAsked = 10

// Variables by which the proxy is told its cluster and its network.
const (
	clusterVariable = "ISTIO_META_CLUSTER_ID"
	networkVariable = "ISTIO_META_NETWORK"
)

// Inject returns the pod with what the templates lay over it. The error says what of the pod, or
// of which template, is wrong.
func (s *Settings) Inject(r Request) (*corev1.Pod, error) {
	if err := checkAnnotations(r.Pod.Annotations); err != nil {
		return nil, err
	}
	if r.User != 0 || s.OpenShift() {
		r.Pod = withoutSame(r.Pod)
	}
	i := &injection{Settings: s, Request: r, env: maps.Clone(r.Env)}
	i.places()
	if err := i.layOver(); err != nil {
		return nil, err
	}
	if err := i.again(); err != nil {
		return nil, err
	}
	if err := i.finish(); err != nil {
		return nil, err
	}
	return i.pod, nil
}

// injection is a pod on its way.
type injection struct {
	*Settings
	Request
	env map[string]string
	// pod is what has become of the pod; laid is what the templates laid over it, by itself,
	// which doesn't change.
	pod, laid *corev1.Pod
}

// places finds out the cluster and the network.
func (i *injection) places() {
	if i.env == nil {
		i.env = map[string]string{}
	}
	if v := cmp.Or(i.env[clusterVariable], i.values.text("global", "multiCluster", "clusterName")); v != "" {
		i.env[clusterVariable] = v
	}
	network := cmp.Or(i.env[networkVariable], i.values.text("global", "network"))
	if l, ok := i.Pod.Labels[label.TopologyNetwork.Name]; ok {
		network = l
	}
	if network != "" {
		i.env[networkVariable] = network
	}
}

// statusPort is the port of the agent.
func (i *injection) statusPort() int32 { return i.Mesh.GetDefaultConfig().GetStatusPort() }

// data is what templates are run with: the pod without what was injected before.
func (i *injection) data() (*Data, error) {
	bare, err := i.bare()
	if err != nil {
		return nil, err
	}
	mode := "passthrough"
	if i.Mesh.GetInboundTrafficPolicy().GetMode() == mesh.MeshConfig_InboundTrafficPolicy_LOCALHOST {
		mode = "localhost"
	}
	return &Data{
		TypeMeta: i.Kind, DeploymentMeta: i.Of, ObjectMeta: bare.ObjectMeta, Spec: bare.Spec, ProxyConfig: i.Proxy, MeshConfig: i.Mesh, Values: i.values,
		Revision: i.Revision, NativeSidecars: i.Native, ProxyUID: cmp.Or(i.User, proxyID), ProxyGID: cmp.Or(i.Group, proxyID),
		ProxyImage:     i.imageOf("proxy", i.Proxy.GetImage().GetImageType(), bare.Annotations),
		ProxyInitImage: i.imageOf("proxy_init", "", bare.Annotations), InboundTrafficPolicyMode: mode, CompliancePolicy: i.Compliance,
	}, nil
}

// imageOf is the image of a kind: HUB/NAME:TAG-VARIANT.
func (s *Settings) imageOf(kind, variant string, annotations map[string]string) string {
	name := cmp.Or(s.values.text("global", kind, "image"), "proxyv2")
	tag := s.values.text("global", "tag")
	variant = cmp.Or(variant, s.values.text("global", "variant"))
	if v, ok := annotations[annotation.SidecarProxyImageType.Name]; ok {
		variant = v
	}
	if variant != "" {
		for _, known := range []string{"-distroless", "-debug"} {
			if cut, ok := strings.CutSuffix(tag, known); ok {
				tag = cut
				break
			}
		}
		if variant != "default" {
			tag += "-" + variant
		}
	}
	return s.values.text("global", "hub") + "/" + name + ":" + tag
}

// layOver lays the templates over the pod, one after the other.
func (i *injection) layOver() error {
	d, err := i.data()
	if err != nil {
		return err
	}
	asked, ok := i.Pod.Annotations[annotation.InjectTemplates.Name]
	names := i.resolve(asked, ok)
	if len(names) > mostAsked {
		return fmt.Errorf("%d templates are asked for; %d are the most", len(names), mostAsked)
	}
	i.pod, i.laid = i.Pod.DeepCopy(), nil
	for _, name := range names {
		t := i.templates[name]
		if t == nil && (name == managedName || name == waypointName) {
			return fmt.Errorf("template %s makes what is deployed for a Gateway, and no pod's proxy", name)
		}
		if t == nil {
			return fmt.Errorf("there is no template %q; there are %s", name, strings.Join(i.Templates(), ", "))
		}
		out, err := t.over(d, i.sheets)
		if err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
		if i.laid == nil {
			i.laid = out.pod
		} else if i.laid, err = out.over(i.laid); err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
		if native(i.pod.Annotations, i.Native) && find(i.laid.Spec.InitContainers, proxyName) != nil {
			i.pod.Spec.Containers, i.pod.Spec.InitContainers = moved(i.pod.Spec.Containers, i.pod.Spec.InitContainers, proxyName)
		}
		if i.pod, err = out.over(i.pod); err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
	}
	i.laid = cmp.Or(i.laid, &corev1.Pod{})
	return nil
}

// find returns the container of a name; nil if there is none.
func find(list []corev1.Container, name string) *corev1.Container {
	if at := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name }); at >= 0 {
		return &list[at]
	}
	return nil
}

// proxyOf returns a pod's proxy, of whichever kind; nil if there is none.
func proxyOf(pod *corev1.Pod) *corev1.Container {
	return cmp.Or(find(pod.Spec.Containers, proxyName), find(pod.Spec.InitContainers, proxyName))
}

// moved takes a container of one list to the end of another.
func moved(from, to []corev1.Container, name string) (less, more []corev1.Container) {
	c := find(from, name)
	if c == nil {
		return from, to
	}
	to = append(slices.Clone(to), *c)
	return removed(from, name), to
}

func removed(list []corev1.Container, name string) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(list), func(c corev1.Container) bool { return c.Name == name })
}

// withoutSame returns a pod whose proxy names no user where that is the workload's: a cluster that
// gives each namespace users has given it to both, and redirection would leave both alone.
func withoutSame(pod *corev1.Pod) *corev1.Pod {
	var proxy, app int64
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			switch s := c.SecurityContext; {
			case s == nil || s.RunAsUser == nil || c.Name == initName || c.Name == validationName:
			case c.Name == proxyName:
				proxy = *s.RunAsUser
			default:
				app = *s.RunAsUser
			}
		}
	}
	if proxy != app {
		return pod
	}
	pod = pod.DeepCopy()
	if own := proxyOf(pod); own != nil && own.SecurityContext != nil {
		own.SecurityContext.RunAsUser, own.SecurityContext.RunAsGroup = nil, nil
	}
	return pod
}
