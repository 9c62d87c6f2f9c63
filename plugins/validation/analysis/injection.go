package analysis

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	mesh "istio.io/api/mesh/v1alpha1"
	proxyconfig "istio.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const (
	notInjected     = "IST0102"
	missingProxy    = "IST0103"
	manyInjections  = "IST0123"
	injectedAnyway  = "IST0148"
	autoDeployment  = "IST0146"
	autoPod         = "IST0147"
	otherProxyImage = "IST0158"
	proxysUser      = "IST0144"
)

// systemNamespaces are those in which nothing is injected. Source: Istio, "Automatic sidecar
// injection".
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}

// injectorConfig is the name of the ConfigMap with the settings of injection, which has -REVISION
// behind it for all but the default one.
const injectorConfig = "istio-sidecar-injector"

func injectorOf(revision string) string {
	if revision == "" || revision == "default" {
		return injectorConfig
	}
	return injectorConfig + "-" + revision
}

// injectorValues is as much of these settings as is looked at.
type injectorValues struct {
	Global struct {
		Hub, Tag string
		Proxy    struct{ Image string }
	}
	SidecarInjectorWebhook struct{ EnableNamespacesByDefault bool }
}

// injectors returns the settings of injection by the names of their ConfigMaps.
func (w *world) injectors() map[string]*injectorValues {
	out := map[string]*injectorValues{}
	for _, r := range w.objectsOf(kindConfigMap) {
		if strings.HasPrefix(r.Name, injectorConfig) {
			v := &injectorValues{}
			_ = json.Unmarshal([]byte(r.data["values"]), v) // what can't be read says nothing
			out[r.Name] = v
		}
	}
	return out
}

// image is that of the proxies that are injected.
func (v *injectorValues) image() string {
	if image := v.Global.Proxy.Image; strings.Contains(image, "/") {
		return image
	}
	return v.Global.Hub + "/" + v.Global.Proxy.Image + ":" + v.Global.Tag
}

// injection finds namespaces that don't say whether pods get proxies, or say it twice, and pods
// that should have one and have not.
func injection(w *world) {
	injectors := w.injectors()
	for _, n := range w.objectsOf(kindNamespace) {
		if n.Name == w.root() || n.Name == defaultRoot || slices.Contains(systemNamespaces, n.Name) {
			continue
		}
		injects, labelled := n.Labels[injectionLabel]
		revision, revised := n.Labels[revisionLabel]
		w.injectedTwice(n)
		switch values := injectors[injectorOf(revision)]; {
		case n.Labels[dataplaneLabel] == ambientMode:
		case revised, labelled && injects != "":
		case values != nil && values.SidecarInjectorWebhook.EnableNamespacesByDefault:
			w.report(n, finding.Infof(injectedAnyway, "metadata.name", "it has no label for injection, and pods get proxies: enableNamespacesByDefault is set"))
		default:
			w.report(n, finding.Infof(notInjected, "metadata.name", "its pods get no proxies").
				WithHint("label it %s=%s, or =disabled if that is meant", injectionLabel, injectionOn))
		}
	}
	for _, p := range w.objectsOf(kindPod) {
		n := w.namespaces[p.Namespace]
		if n == nil || n.Name == w.root() || n.Labels[injectionLabel] != injectionOn || n.Labels[dataplaneLabel] == ambientMode {
			continue
		}
		injected := p.Annotations[injectLabel]
		if v, ok := p.Labels[injectLabel]; ok {
			injected = v
		}
		if !strings.EqualFold(injected, "false") && !p.pod.HostNetwork && p.pod.proxyImage() == "" {
			w.report(p, finding.Warnf(missingProxy, "spec.containers", "it has no proxy, though its namespace has proxies injected").
				WithHint("it was probably created before that: make it anew"))
		}
	}
}

// injectedTwice reports a namespace with labels of several ways into the mesh.
func (w *world) injectedTwice(n *Resource) {
	var ways []string
	injects, labelled := n.Labels[injectionLabel]
	if labelled {
		ways = append(ways, injectionLabel+"="+injects)
	}
	for _, l := range []string{revisionLabel, dataplaneLabel} {
		if v, ok := n.Labels[l]; ok && (!labelled || injects == injectionOn) {
			ways = append(ways, l+"="+v)
		}
	}
	if len(ways) > 1 {
		w.report(n, finding.Warnf(manyInjections, "metadata.labels", "it has several labels for injection (%s): "+
			"which one counts is open", strings.Join(ways, ", ")).
			WithHint("keep one"))
	}
}

// autoImages finds pods whose proxy's image is to be set by injection, and which are not injected.
func autoImages(w *world) {
	type chosen struct{ namespaces, objects labels.Selector }
	var hooks []chosen
	for _, r := range w.objectsOf(kindMutating) {
		for i := range r.webhooks {
			if h := &r.webhooks[i]; strings.HasSuffix(h.Name, istioDomain) {
				hooks = append(hooks, chosen{h.NamespaceSelector.selector(), h.ObjectSelector.selector()})
			}
		}
	}
	for _, r := range w.resources {
		if r.pod == nil || !slices.ContainsFunc(r.pod.Containers, func(c container) bool { return c.Name == proxyName && c.Image == "auto" }) {
			continue
		}
		if r.Kind == kindPod {
			w.report(r, finding.Errorf(autoPod, "spec.containers", "the proxy's image is auto, and nobody has set it: the pod was not injected"))
			continue
		}
		var of map[string]string
		if n := w.namespaces[r.Namespace]; n != nil {
			of = n.Labels
		}
		if !slices.ContainsFunc(hooks, func(h chosen) bool {
			return h.namespaces.Matches(labels.Set(of)) && h.objects.Matches(labels.Set(r.podLabels))
		}) {
			w.report(r, finding.Warnf(autoDeployment, r.podAt+".containers", "the proxy's image is auto, and no webhook for injection selects its pods").
				WithHint("label the namespace, or the pods %s=true", injectLabel))
		}
	}
}

// proxyImages finds namespaces with pods whose proxies have another image than injection gives.
func proxyImages(w *world) {
	injectors := w.injectors()
	if len(injectors) == 0 {
		return
	}
	other, variants := map[string][]string{}, w.imageTypes()
	for _, p := range w.objectsOf(kindPod) {
		n := w.namespaces[p.Namespace]
		if n == nil || p.Annotations["sidecar.istio.io/proxyImage"] != "" {
			continue
		}
		revision, revised := n.Labels[revisionLabel]
		if !revised && n.Labels[injectionLabel] != injectionOn {
			continue
		}
		values, image := injectors[injectorOf(revision)], p.pod.proxyImage()
		if values == nil || image == "" {
			continue
		}
		if want := values.image(); image != want && image != want+"-"+variants.of(p) {
			other[p.Namespace] = append(other[p.Namespace], p.Name)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(other)) {
		w.report(w.namespaces[namespace], finding.Warnf(otherProxyImage, "metadata.name", "pods have another image of the proxy than injection gives: %s",
			strings.Join(atMost(slices.Sorted(slices.Values(other[namespace])), 10), ", ")).WithHint("make them anew, as after an upgrade"))
	}
}

// atMost returns the first of a list, and how many more there are.
func atMost(list []string, most int) []string {
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}

// imageTypes are the variants of proxies' images that ProxyConfigs and the mesh's settings name.
type imageTypes struct {
	mesh       string
	namespaces map[string]string
	workloads  []item[*proxyconfig.ProxyConfig]
}

func (w *world) imageTypes() *imageTypes {
	t := &imageTypes{mesh: w.mesh.GetDefaultConfig().GetImage().GetImageType(), namespaces: map[string]string{}}
	for _, c := range of[*proxyconfig.ProxyConfig](w) {
		switch kind := c.spec.GetImage().GetImageType(); {
		case kind == "":
		case c.Namespace == w.root():
			t.mesh = kind
		case c.spec.Selector == nil:
			t.namespaces[c.Namespace] = kind
		default:
			t.workloads = append(t.workloads, c)
		}
	}
	return t
}

// of returns the variant of a pod's proxy; empty for the usual one.
func (t *imageTypes) of(pod *Resource) string {
	kind := t.mesh
	if v, ok := t.namespaces[pod.Namespace]; ok {
		kind = v
	}
	for _, c := range t.workloads {
		if c.Namespace == pod.Namespace && istio.Selects(c.spec.Selector.GetMatchLabels(), pod.Labels) {
			kind = c.spec.GetImage().GetImageType()
		}
	}
	if own := proxyConfigOf(pod.Annotations["proxy.istio.io/config"]); own.GetImage().GetImageType() != "" {
		kind = own.GetImage().GetImageType()
	}
	if kind == "default" {
		return ""
	}
	return kind
}

// proxyConfigOf reads the settings of a pod's proxy; nil: there are none, or they can't be read.
func proxyConfigOf(text string) *mesh.ProxyConfig {
	c, err := parseProxyConfig(text)
	if err != nil {
		return nil
	}
	return c
}

func parseProxyConfig(text string) (*mesh.ProxyConfig, error) {
	c := &mesh.ProxyConfig{}
	node, fault := protoyaml.Chunk{Text: []byte(text)}.Parse()
	if fault != nil {
		return nil, fault
	}
	if node == nil {
		return c, nil
	}
	if faults := protoyaml.Decode(node, "", c); len(faults) > 0 {
		return nil, faults[0]
	}
	return c, nil
}

// proxyUser is the user whose connections are not intercepted: proxies run as it. Source: Istio,
// "Application Requirements", application UIDs.
const proxyUser = 1337

// proxysUsers finds containers that run as proxies do, so that what they say goes past these.
func proxysUsers(w *world) {
	for _, r := range w.resources {
		if r.pod == nil {
			continue
		}
		tell := func(at string) {
			w.report(r, finding.Warnf(proxysUser, at+".securityContext.runAsUser",
				"User %d is the proxy's: what it sends is not intercepted", proxyUser).WithHint("run the application as another user"))
		}
		if r.pod.SecurityContext.RunAsUser == proxyUser {
			tell(r.podAt)
		}
		for i, c := range r.pod.Containers {
			if c.Name != proxyName && c.SecurityContext.RunAsUser == proxyUser {
				tell(fmt.Sprintf("%s.containers[%d]", r.podAt, i))
			}
		}
	}
}
