package render

import (
	"cmp"
	"slices"

	"istio.io/api/annotation"
	corev1 "k8s.io/api/core/v1"
)

// waypointName is the name that Istio has for the template of waypoints that a control plane
// deploys.
const waypointName = "waypoint"

// waypointAudience is for whom a waypoint's token is, whatever the values say.
const waypointAudience = "istio-ca"

// waypoint fills in pods of a waypoint: a proxy that is the workload, scheduled and sized as
// global.waypoint of the values says, and not as proxies are.
func (f *form) waypoint(m Managed) {
	spec := &f.pod.Spec
	for name, to := range map[string]any{
		"affinity": &spec.Affinity, "topologySpreadConstraints": &spec.TopologySpreadConstraints,
		"nodeSelector": &spec.NodeSelector, "tolerations": &spec.Tolerations,
	} {
		if v := f.values.global(waypointName, name); truth(v) {
			f.convert("global.waypoint."+name, v, to)
		}
	}
	spec.ServiceAccountName = m.Account
	c := corev1.Container{
		Name: proxyName, Image: f.image(f.values.proxy("image"), f.ProxyImage), Args: f.waypointArguments(m), Env: f.waypointEnvironment(m),
		Ports:           managedPorts(),
		SecurityContext: f.waypointSecurity(),
		StartupProbe:    readyOver(1, 1, 30), ReadinessProbe: readyOver(0, 15, 4), VolumeMounts: f.waypointStorage(),
	}
	if v := f.values.global(waypointName, "resources"); truth(v) {
		f.convert("global.waypoint.resources", omitNil(v), &c.Resources)
	}
	f.pull(&c)
	f.pullSecrets()
	spec.Containers = []corev1.Container{c}
}

func (f *form) waypointArguments(m Managed) []string {
	args := []string{
		"proxy", "waypoint", "--domain", "$(POD_NAMESPACE).svc." + f.values.text("global", "proxy", "clusterDomain"),
		"--serviceCluster", m.Account + ".$(POD_NAMESPACE)",
		"--proxyLogLevel", f.note(annotation.SidecarLogLevel.Name, f.values.proxy("logLevel")),
		"--proxyComponentLogLevel", f.note(annotation.SidecarComponentLogLevel.Name, f.values.proxy("componentLogLevel")),
		"--log_output_level", f.note(annotation.SidecarAgentLogLevel.Name, f.values.global("logging", "level")),
	}
	if f.values.is("global", "logAsJson") {
		args = append(args, "--log_as_json")
	}
	if path := f.values.text("global", "proxy", "outlierLogPath"); path != "" {
		args = append(args, "--outlierLogPath="+path)
	}
	return args
}

// waypointEnvironment has the variables of the proxies' settings after the settings, as Istio has
// them; no name may be there twice, and these count.
func (f *form) waypointEnvironment(m Managed) []corev1.EnvVar {
	before, own, after := &variables{}, &variables{}, &variables{}
	before.field("ISTIO_META_SERVICE_ACCOUNT", "spec.serviceAccountName")
	before.field("ISTIO_META_NODE_NAME", "spec.nodeName")
	f.authority(before)
	place(before)
	before.limit("ISTIO_CPU_LIMIT", "cpu")
	before.set("PROXY_CONFIG", protoToJSON(f.ProxyConfig))
	f.metadata(own)
	after.limit("GOMEMLIMIT", "memory")
	after.limit("GOMAXPROCS", "cpu")
	after.set(clusterVariable, cmp.Or(f.values.text("global", "multiCluster", "clusterName"), m.Cluster, "Kubernetes"))
	after.setIf(networkVariable, cmp.Or(m.Network, f.values.text("global", "network")))
	after.set("ISTIO_META_INTERCEPTION_MODE", "REDIRECT")
	f.workload(after, m.Name)
	f.domain(after)
	for _, v := range []*variables{before, after} {
		*v = slices.DeleteFunc(*v, func(e corev1.EnvVar) bool { _, ok := f.ProxyConfig.GetProxyMetadata()[e.Name]; return ok })
	}
	return slices.Concat(*before, *own, *after)
}

// waypointSecurity leaves the user to OpenShift, which gives each namespace its own.
func (f *form) waypointSecurity() *corev1.SecurityContext {
	yes, no := true, false
	s := &corev1.SecurityContext{
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, AllowPrivilegeEscalation: &no, Privileged: &no,
		ReadOnlyRootFilesystem: &yes, RunAsNonRoot: &yes,
	}
	if f.values.text("global", "platform") != "openshift" {
		user := int64(proxyID)
		s.RunAsUser, s.RunAsGroup = &user, &user
	}
	if v := f.values.at("gateways", "seccompProfile"); truth(v) {
		f.convert("gateways.seccompProfile", v, &s.SeccompProfile)
	}
	return s
}

// waypointStorage gives the pod its volumes, and returns their mounts.
func (f *form) waypointStorage() []corev1.VolumeMount {
	v, memory := &volumes{}, directory(corev1.StorageMediumMemory)
	token := f.token()
	token.Projected.Sources[0].ServiceAccountToken.Audience = waypointAudience
	v.mount("workload-socket", "/var/run/secrets/workload-spiffe-uds", corev1.VolumeSource{})
	v.mount("istio-envoy", "/etc/istio/proxy", memory)
	v.all = append(v.all, corev1.Volume{Name: "go-proxy-envoy", VolumeSource: memory})
	v.mount("istio-data", "/var/lib/istio/data", directory(""))
	v.all = append(v.all, corev1.Volume{Name: "go-proxy-data", VolumeSource: directory("")})
	v.mount("istio-podinfo", "/etc/istio/pod", podInfo())
	v.mount("istio-token", "/var/run/secrets/tokens", token)
	v.mount("istiod-ca-cert", "/var/run/secrets/istio", f.roots())
	f.pod.Spec.Volumes = v.all
	return v.sorted()
}
