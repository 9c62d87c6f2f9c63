package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
)

// Labels and annotations. Source: Istio, "Resource Labels" and "Resource Annotations"; Gateway API,
// GEP-1762 (in-cluster deployments).
const (
	nameLabel    = "gateway.networking.k8s.io/gateway-name"
	classLabel   = "gateway.networking.k8s.io/gateway-class-name"
	managedLabel = "gateway.istio.io/managed"
	// oldNameLabel was in selectors, which can't change, before Istio 1.24.
	oldNameLabel  = "istio.io/gateway-name"
	revisionLabel = "istio.io/rev"
	networkLabel  = "topology.istio.io/network"
	injectLabel   = "sidecar.istio.io/inject"
	modeLabel     = "istio.io/dataplane-mode"

	nameAnnotation    = "gateway.istio.io/name-override"
	accountAnnotation = "gateway.istio.io/service-account"
	typeAnnotation    = "networking.istio.io/service-type"
	nearAnnotation    = "networking.istio.io/traffic-distribution"
	versionAnnotation = "gateway.istio.io/controller-version"

	// reserved is the prefix of labels and annotations that Gateways don't hand on.
	reserved = "gateway.networking.k8s.io/"
	// controllerVersion is what istiod calls its way of deploying; who has a higher one has taken
	// the Gateway over.
	controllerVersion = 5
	defaultRevision   = "default"
	statusPort        = 15021
)

// class is what Gateways of a controller have in common.
type class struct {
	// label is the value of managedLabel of all that is made for them.
	label string
	// service is the type of their Services where they say none.
	service corev1.ServiceType
	// waypoint: they are of ambient mode. What is made for one has its name alone.
	waypoint bool
}

// Classes of Gateways that something is deployed for.
var (
	ingresses = &class{label: "istio.io-gateway-controller", service: corev1.ServiceTypeLoadBalancer}
	waypoints = &class{label: "istio.io-mesh-controller", service: corev1.ServiceTypeClusterIP, waypoint: true}
)

// madeForGateways selects objects that were made for Gateways of whichever class.
var madeForGateways = fmt.Sprintf("%s in (%s,%s)", managedLabel, ingresses.label, waypoints.label)

// unsaid are annotations of a Gateway that its objects don't get: one that rows alone have would
// start its pods anew with each change of the Gateway.
var unsaid = []string{"kubectl.kubernetes.io/last-applied-configuration", nameAnnotation, accountAnnotation,
	versionAnnotation, gatewayapi.GenerationAnnotation,
	gatewayapi.UIDAnnotation}

// part is a kind of objects that are made for Gateways.
type part struct {
	resource schema.GroupVersionResource
	kind     string
	// overlay is the key in ConfigMaps that changes objects of the kind; asked: without it none is
	// made.
	overlay string
	asked   bool
	// typed is an empty object of the kind.
	typed func() any
}

func (s *part) apiVersion() string { return s.resource.GroupVersion().String() }

// Parts, in the order in which objects are made.
var (
	accounts = &part{
		corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "ServiceAccount", "serviceAccount", false,
		func() any { return &corev1.ServiceAccount{} },
	}
	deployments = &part{appsv1.SchemeGroupVersion.WithResource("deployments"), "Deployment", "deployment", false, func() any { return &appsv1.Deployment{} }}
	services    = &part{corev1.SchemeGroupVersion.WithResource("services"), "Service", "service", false, func() any { return &corev1.Service{} }}
	autoscalers = &part{
		autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), "HorizontalPodAutoscaler", "horizontalPodAutoscaler", true,
		func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	}
	budgets = &part{
		policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "PodDisruptionBudget", "podDisruptionBudget", true,
		func() any { return &policyv1.PodDisruptionBudget{} },
	}
)

func allParts() []*part { return []*part{accounts, deployments, services, autoscalers, budgets} }

// wished is an object that a Gateway is to have.
type wished struct {
	*part
	name string
	// content is the whole object, as JSON has it.
	content map[string]any
}

// subject is a Gateway with all that decides about its objects.
type subject struct {
	*gatewayRow
	of  *class
	uid types.UID
	// network is that of the values; empty: they name none.
	network string
	// sets are the listeners of ListenerSets that may belong to it.
	sets []gateway.Listener
	// pod makes the pods' spec.
	pod func(name, account string) (*corev1.PodSpec, error)
	// revision is the control plane's.
	revision string
	// class are the ConfigMaps' overlays for the class, own those of the Gateway; allowed is what
	// these may set.
	class, own map[string]string
	allowed    allowed
}

// names are those of the Deployment, and all that goes with it, and of the service account.
func (g *gatewayRow) names(of *class) (name, account string) {
	usual := g.name
	if !of.waypoint {
		usual += "-" + string(g.spec.GatewayClassName)
	}
	return cmp.Or(g.annotations[nameAnnotation], usual), cmp.Or(g.annotations[accountAnnotation], usual)
}

// managed reports whether something is deployed for a Gateway: unless its addresses name a service.
// Source: Istio, Kubernetes Gateway API, "Manual deployment".
func (g *gatewayRow) managed() bool {
	if len(g.spec.Addresses) == 1 {
		t := g.spec.Addresses[0].Type
		return t == nil || *t == gateway.IPAddressType
	}
	return len(g.spec.Addresses) == 0
}

// newer reports whether a newer controller has taken the Gateway over.
func (g *gatewayRow) newer() bool {
	v, ok := g.annotations[versionAnnotation]
	if !ok {
		return false
	}
	n, err := strconv.Atoi(v)
	return err != nil || n > controllerVersion
}

// labels are those that the Gateway hands on.
func (g *gatewayRow) handedLabels() map[string]string {
	if i := g.spec.Infrastructure; i != nil && i.Labels != nil {
		return handedOn(i.Labels)
	}
	return maps.Clone(g.labels)
}

// annotations are those that the Gateway hands on.
func (g *gatewayRow) handedAnnotations() map[string]string {
	out := maps.Clone(g.annotations)
	if i := g.spec.Infrastructure; i != nil && i.Annotations != nil {
		out = handedOn(i.Annotations)
	}
	for _, name := range unsaid {
		delete(out, name)
	}
	return out
}

func handedOn[K, V ~string](all map[K]V) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if !strings.HasPrefix(string(k), reserved) {
			out[string(k)] = string(v)
		}
	}
	return out
}

// handedLabels are those that the Gateway hands on; a waypoint without a network is of that of the
// values.
func (s *subject) handedLabels() map[string]string {
	out := s.gatewayRow.handedLabels()
	if _, own := s.labels[networkLabel]; s.of.waypoint && !own && s.network != "" {
		return over(out, map[string]string{networkLabel: s.network})
	}
	return out
}

// over lays maps over each other, the last on top.
func over(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// wishes returns the objects of a Gateway. The error says what is wrong with it, or with its
// ConfigMaps.
func (s *subject) wishes() ([]*wished, error) {
	name, account := s.names(s.of)
	if errs := validation.IsDNS1035Label(name); len(errs) > 0 {
		return nil, fmt.Errorf("%q can't be the name of a Service (%s); annotation %s says another one", name, errs[0], nameAnnotation)
	}
	if errs := validation.IsDNS1123Subdomain(account); len(errs) > 0 {
		return nil, fmt.Errorf("%q can't be the name of a service account (%s)", account, errs[0])
	}
	labels, notes := s.handedLabels(), s.handedAnnotations()
	own := map[string]string{nameLabel: s.name, classLabel: string(s.spec.GatewayClassName), managedLabel: s.of.label}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: s.namespace, Labels: over(labels, own), Annotations: notes,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: gateway.GroupVersion.String(), Kind: "Gateway", Name: s.name, UID: s.uid}},
		}
	}
	pod, err := s.pod(name, account)
	if err != nil {
		return nil, err
	}
	selector := map[string]string{nameLabel: s.name}
	service, err := s.service(selector)
	if err != nil {
		return nil, err
	}
	usual := map[string]string{"service.istio.io/canonical-name": name, "service.istio.io/canonical-revision": "latest"}
	reached := meta(name)
	if s.of.waypoint {
		usual[modeLabel] = "none" // its traffic is not led to a waypoint
		reached.Annotations = over(map[string]string{nearAnnotation: "PreferClose"}, notes)
	}
	template := corev1.PodTemplateSpec{Spec: *pod, ObjectMeta: metav1.ObjectMeta{
		Annotations: over(notes, map[string]string{
			revisionLabel: s.revision, "prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020", "prometheus.io/scrape": "true",
		}),
		Labels: over(usual, labels, map[string]string{injectLabel: "false"}, own),
	}}
	if v, ok := labels[injectLabel]; ok && s.allowed.all {
		template.Labels[injectLabel] = v
	}
	scaled := autoscalingv2.CrossVersionObjectReference{APIVersion: deployments.apiVersion(), Kind: deployments.kind, Name: name}
	var out []*wished
	for _, o := range []struct {
		*part
		name string
		is   any
	}{
		{accounts, account, &corev1.ServiceAccount{ObjectMeta: meta(account)}},
		{deployments, name, &appsv1.Deployment{
			ObjectMeta: meta(name), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: template},
		}},
		{services, name, &corev1.Service{ObjectMeta: reached, Spec: *service}},
		{autoscalers, name, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: meta(name),
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: scaled, MaxReplicas: 1},
		}},
		{budgets, name, &policyv1.PodDisruptionBudget{
			ObjectMeta: meta(name),
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}},
		}},
	} {
		content, err := s.overlaid(o.part, o.is)
		if err != nil {
			return nil, err
		}
		if content != nil {
			out = append(out, &wished{o.part, o.name, content})
		}
	}
	return out, nil
}

// service is what is to be reached.
func (s *subject) service(selector map[string]string) (*corev1.ServiceSpec, error) {
	dual := corev1.IPFamilyPolicyPreferDualStack
	out := &corev1.ServiceSpec{Type: s.of.service, Selector: selector, IPFamilyPolicy: &dual, Ports: s.ports()}
	if t, ok := s.annotations[typeAnnotation]; ok {
		out.Type = corev1.ServiceType(t)
	}
	if len(s.spec.Addresses) > 0 && out.Type == corev1.ServiceTypeLoadBalancer {
		out.LoadBalancerIP = s.spec.Addresses[0].Value
	}
	return out, serves(out.Type)
}

// serves refuses types of a Service that would lead elsewhere.
func serves(t corev1.ServiceType) error {
	switch t {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return nil
	}
	return fmt.Errorf("%q is no type of a Service for a Gateway: it is LoadBalancer, ClusterIP or NodePort", t)
}

// longestName is how long the name of a port may be. Source: Kubernetes API, ServicePort.name.
const longestName = 63

// ports are the Service's: one for each port that listeners have, for TCP and for UDP apart, named
// after the first of them.
func (s *subject) ports() []corev1.ServicePort {
	type place struct {
		number int32
		of     corev1.Protocol
	}
	tcp := "tcp"
	out := []corev1.ServicePort{{Name: "status-port", Port: statusPort, Protocol: corev1.ProtocolTCP, AppProtocol: &tcp}}
	used, there := map[string]bool{"status-port": true}, map[place]bool{}
	for i, l := range slices.Concat(s.spec.Listeners, s.sets) {
		at := place{int32(l.Port), corev1.ProtocolTCP}
		if l.Protocol == gateway.UDPProtocolType {
			at.of = corev1.ProtocolUDP
		}
		if there[at] {
			continue
		}
		there[at] = true
		protocol := strings.ToLower(string(l.Protocol))
		name := cmp.Or(strings.ReplaceAll(string(l.Name), ".", "-"), fmt.Sprintf("%s-%d", protocol, i))
		out = append(out, corev1.ServicePort{Name: unique(name, at.number, used), Port: at.number, Protocol: at.of, AppProtocol: &protocol})
	}
	return out
}

// unique is a name that is not used yet.
func unique(name string, port int32, used map[string]bool) string {
	name = name[:min(len(name), longestName)]
	out := name
	for suffix := fmt.Sprintf("-%d", port); used[out]; suffix += "x" {
		out = name[:min(len(name), longestName-len(suffix))] + suffix
	}
	used[out] = true
	return out
}

// asMap makes of an object what JSON has of it, without what only the API server writes.
func (s *part) asMap(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	delete(out, "status")
	out["apiVersion"], out["kind"] = s.apiVersion(), s.kind
	if spec, ok := out["spec"].(map[string]any); ok {
		dropNull(spec)
	}
	dropNull(out)
	return out, nil
}

// dropNull drops what types write though there is nothing, such as metadata.creationTimestamp, and
// empty resources and strategies.
func dropNull(m map[string]any) {
	for _, k := range []string{"metadata", "template"} {
		if inner, ok := m[k].(map[string]any); ok {
			dropNull(inner)
		}
	}
	for k, v := range m {
		if v == nil || k == "strategy" && len(v.(map[string]any)) == 0 {
			delete(m, k)
		}
	}
	if pod, ok := m["spec"].(map[string]any); ok {
		for _, list := range []string{"containers", "initContainers"} {
			all, _ := pod[list].([]any)
			for _, c := range all {
				c, _ := c.(map[string]any)
				if r, ok := c["resources"].(map[string]any); ok && len(r) == 0 {
					delete(c, "resources")
				}
			}
		}
	}
}
