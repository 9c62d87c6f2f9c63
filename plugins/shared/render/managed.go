package render

import (
	"cmp"
	"maps"
	"slices"

	"istio.io/api/annotation"
	mesh "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// managedName is the name that Istio has for the template of gateways that a control plane deploys.
const managedName = "kube-gateway"

// Managed is a gateway that is deployed for an object of kind Gateway.
type Managed struct {
	// Namespace and Name are those of its Deployment, Account the service account that it runs as.
	Namespace, Name, Account string
	// Annotations are the Gateway's: those for the image and for levels of logs count.
	Annotations map[string]string
	// Network is what the Gateway's label topology.istio.io/network says; empty: the values' own.
	Network string
	// Cluster is the cluster's name where the values have none; Image the proxy's where neither an
	// annotation names one; empty: that of the values.
	Cluster, Image string
	Mesh           *mesh.MeshConfig
	Proxy          *mesh.ProxyConfig
	// User and Group are those that the proxy runs as; 0: Istio's.
	User, Group int64
	// Waypoint: it is one of ambient mode, whose user is Istio's, or the cluster's on OpenShift.
	Waypoint bool
}

// heeded are the annotations of a Gateway that count for its pods.
var heeded = []string{
	imageNote, annotation.SidecarProxyImageType.Name, annotation.SidecarLogLevel.Name,
	annotation.SidecarComponentLogLevel.Name, annotation.SidecarAgentLogLevel.Name,
}

// Managed returns what pods of a managed gateway are: a proxy that is the workload, with all that
// it needs, so that nothing has to be injected. It is what istiod makes by its template
// kube-gateway, or waypoint. The error says which value or annotation is wrong.
func (s *Settings) Managed(m Managed) (*corev1.PodSpec, error) {
	notes := map[string]string{}
	for _, name := range heeded {
		if v, ok := m.Annotations[name]; ok {
			notes[name] = v
		}
	}
	d := &Data{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, DeploymentMeta: types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
		ObjectMeta:  metav1.ObjectMeta{Namespace: m.Namespace, Annotations: notes},
		ProxyConfig: m.Proxy, MeshConfig: m.Mesh, Values: s.values, ProxyUID: cmp.Or(m.User, proxyID), ProxyGID: cmp.Or(m.Group, proxyID),
		ProxyImage: cmp.Or(m.Image, s.imageOf("proxy", m.Proxy.GetImage().GetImageType(), notes)),
	}
	f := &form{Data: d, values: s.values}
	if m.Waypoint {
		f.waypoint(m)
	} else {
		f.managed(m)
	}
	return &f.pod.Spec, f.err
}

// Network is that of the values (global.network); empty: they name none.
func (s *Settings) Network() string { return s.values.text("global", "network") }

// managedPorts are those of proxies that a control plane deploys.
func managedPorts() []corev1.ContainerPort {
	return slices.Concat(port("metrics", 15020), port("status-port", 15021), port("http-envoy-prom", 15090))
}

func (f *form) managed(m Managed) {
	f.pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}}
	if v := f.values.at("gateways", "seccompProfile"); truth(v) {
		f.convert("gateways.seccompProfile", v, &f.pod.Spec.SecurityContext.SeccompProfile)
	}
	if v := f.values.at("gateways", "securityContext"); truth(v) {
		f.pod.Spec.SecurityContext = nil
		f.convert("gateways.securityContext", v, &f.pod.Spec.SecurityContext)
	}
	f.pod.Spec.ServiceAccountName = m.Account
	yes, no := true, false
	c := corev1.Container{
		Name: proxyName, Image: f.image(f.values.proxy("image"), f.ProxyImage), Args: f.managedArguments(), Env: f.managedEnvironment(m),
		Lifecycle: f.lifecycle(), Resources: f.resources(), VolumeMounts: f.storage(managedName),
		Ports: managedPorts(),
		SecurityContext: &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, AllowPrivilegeEscalation: &no, Privileged: &no,
			ReadOnlyRootFilesystem: &yes, RunAsUser: &f.ProxyUID, RunAsGroup: &f.ProxyGID, RunAsNonRoot: &yes,
		},
		StartupProbe: readyOver(1, 1, 30), ReadinessProbe: readyOver(0, 15, 4),
	}
	f.pull(&c)
	f.pullSecrets()
	f.pod.Spec.Containers = []corev1.Container{c}
}

// readyOver is a probe of what the proxy says of itself, which answers within a second.
func readyOver(delay, period, failures int32) *corev1.Probe {
	p := ready(15021, delay, period, failures)
	p.HTTPGet.Scheme, p.TimeoutSeconds, p.SuccessThreshold = corev1.URISchemeHTTP, 1, 1
	return p
}

func (f *form) managedArguments() []string {
	args := []string{
		"proxy", "router", "--domain", "$(POD_NAMESPACE).svc." + f.values.text("global", "proxy", "clusterDomain"),
		"--proxyLogLevel", f.note(annotation.SidecarLogLevel.Name, f.values.proxy("logLevel")),
		"--proxyComponentLogLevel", f.note(annotation.SidecarComponentLogLevel.Name, f.values.proxy("componentLogLevel")),
		"--log_output_level", f.note(annotation.SidecarAgentLogLevel.Name, f.values.global("logging", "level")),
	}
	if port := f.values.global("sts", "servicePort"); truth(port) {
		args = append(args, "--stsPort="+f.values.text("global", "sts", "servicePort"))
	}
	if f.values.is("global", "logAsJson") {
		args = append(args, "--log_as_json")
	}
	return args
}

func (f *form) managedEnvironment(m Managed) []corev1.EnvVar {
	v := &variables{}
	f.authority(v)
	place(v)
	v.limit("ISTIO_CPU_LIMIT", "cpu")
	v.set("PROXY_CONFIG", protoToJSON(f.ProxyConfig))
	v.set("ISTIO_META_POD_PORTS", "[]")
	v.set("ISTIO_META_APP_CONTAINERS", "")
	v.limit("GOMEMLIMIT", "memory")
	v.limit("GOMAXPROCS", "cpu")
	v.set(clusterVariable, cmp.Or(f.values.text("global", "multiCluster", "clusterName"), m.Cluster, "Kubernetes"))
	v.field("ISTIO_META_NODE_NAME", "spec.nodeName")
	v.set("ISTIO_META_INTERCEPTION_MODE", f.ProxyConfig.GetInterceptionMode().String())
	v.setIf(networkVariable, cmp.Or(m.Network, f.values.text("global", "network")))
	f.workload(v, m.Name)
	f.domain(v)
	own := f.ProxyConfig.GetProxyMetadata()
	for _, name := range slices.Sorted(maps.Keys(own)) { // no name may be there twice
		*v = slices.DeleteFunc(*v, func(e corev1.EnvVar) bool { return e.Name == name })
		v.set(name, own[name])
	}
	v.setIf("ISTIO_META_REQUESTED_NETWORK_VIEW", m.Network)
	return *v
}
