package render

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// proxyID is the user that proxies run as whose traffic is not redirected.
const proxyID = 1337

// redirection is how traffic gets to the proxy.
func (f *form) redirection() string {
	return f.note(modeNote, f.ProxyConfig.GetInterceptionMode())
}

// native reports whether the proxy is an init container that goes on running.
func (f *form) native() bool {
	return native(f.ObjectMeta.Annotations, f.NativeSidecars)
}

// native is what an annotation says, or what is usual.
func native(annotations map[string]string, usual bool) bool {
	switch annotations[nativeNote] {
	case "true":
		return true
	case "false":
		return false
	}
	return usual
}

// sidecar is a proxy beside a workload, with what redirects traffic to it.
func sidecar(f *form) {
	f.label("security.istio.io/tlsMode", "istio")
	if f.ProxyConfig.GetProxyMetadata()["ISTIO_META_ENABLE_HBONE"] == "true" {
		f.label("networking.istio.io/tunnel", "http")
	}
	f.identity(63)
	cni := f.values.is("pilot", "cni", "enabled")
	if cni {
		f.cniNotes()
	}
	tproxy := f.redirection() == "TPROXY"
	if f.redirection() != "NONE" {
		f.pod.Spec.InitContainers = append(f.pod.Spec.InitContainers, f.redirector(cni, tproxy))
	}
	c := corev1.Container{
		Name: proxyName, Image: f.image(f.values.proxy("image"), f.ProxyImage), Ports: port("http-envoy-prom", 15090), Args: f.arguments("sidecar"),
		Env: f.environment(false), Resources: f.resources(), SecurityContext: f.sidecarSecurity(tproxy), VolumeMounts: f.storage(sidecarName),
	}
	if path := f.values.text("global", "proxy", "outlierLogPath"); path != "" {
		c.Args = append(c.Args, "--outlierLogPath="+path)
	}
	f.pull(&c)
	f.life(&c)
	f.probes(&c)
	f.pullSecrets()
	if f.native() {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		f.pod.Spec.InitContainers = append(f.pod.Spec.InitContainers, c)
		return
	}
	f.pod.Spec.Containers = append(f.pod.Spec.Containers, c)
}

// life is what is done as the proxy starts and stops.
func (f *form) life(c *corev1.Container) {
	hold := f.ProxyConfig.GetHoldApplicationUntilProxyStarts().GetValue() || f.values.is("global", "proxy", "holdApplicationUntilProxyStarts")
	switch c.Lifecycle = f.lifecycle(); {
	case c.Lifecycle != nil:
	case f.native(): // It is told to stop when the pod is, and ends when the workload has ended.
		drain := command("pilot-agent", "request", "--debug-port="+f.statusPort(), "POST", "drain")
		c.Lifecycle = &corev1.Lifecycle{PreStop: drain.PostStart}
	case hold:
		c.Lifecycle = command("pilot-agent", "wait")
	}
}

func (f *form) statusPort() string { return f.note(statusPortNote, f.values.proxy("statusPort")) }

func (f *form) probes(c *corev1.Container) {
	if f.statusPort() == "0" {
		return
	}
	if f.values.is("global", "proxy", "startupProbe", "enabled") {
		c.StartupProbe = ready(15021, 0, 1, f.number("", f.values.global("proxy", "startupProbe", "failureThreshold")))
	}
	c.ReadinessProbe = f.readiness(15021)
}

func (f *form) readiness(at int32) *corev1.Probe {
	const prefix = "readiness.status.sidecar.istio.io/"
	return ready(at, f.number(prefix+"initialDelaySeconds", f.values.proxy("readinessInitialDelaySeconds")),
		f.number(prefix+"periodSeconds", f.values.proxy("readinessPeriodSeconds")),
		f.number(prefix+"failureThreshold", f.values.proxy("readinessFailureThreshold")))
}

// sidecarSecurity is what the proxy may do.
func (f *form) sidecarSecurity(tproxy bool) *corev1.SecurityContext {
	yes, root := true, int64(0)
	privileged := f.values.is("global", "proxy", "privileged")
	s := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &privileged, Privileged: &privileged, ReadOnlyRootFilesystem: &yes,
		RunAsNonRoot: &yes, RunAsUser: &f.ProxyUID, RunAsGroup: &f.ProxyGID,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: f.seccomp(),
	}
	if f.ProxyConfig.GetProxyMetadata()["IPTABLES_TRACE_LOGGING"] == "true" {
		no := false
		s.AllowPrivilegeEscalation, s.Privileged, s.RunAsNonRoot, s.RunAsUser = &yes, &yes, &no, &root
		s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		return s
	}
	bind := f.note("sidecar.istio.io/capNetBindService", f.values.proxy("capNetBindService")) == "true"
	if !tproxy && !bind {
		return s
	}
	no, group := false, int64(proxyID)
	s.RunAsNonRoot, s.RunAsUser, s.RunAsGroup = &no, &root, &group
	if tproxy {
		s.Capabilities.Add = append(s.Capabilities.Add, "NET_ADMIN")
	}
	if bind {
		s.Capabilities.Add = append(s.Capabilities.Add, "NET_BIND_SERVICE")
	}
	return s
}

// traffic is an annotation about which traffic is redirected, or the value of the same name.
func (f *form) traffic(name, value string) string {
	return f.note("traffic.sidecar.istio.io/"+name, f.values.proxy(value))
}

// traffics reports whether an annotation or a value says something.
func (f *form) traffics(name string) bool {
	_, ok := f.ObjectMeta.Annotations["traffic.sidecar.istio.io/"+name]
	return ok || f.values.text("global", "proxy", name) != ""
}

// excludedInbound are ports whose traffic the proxy doesn't get.
func (f *form) excludedInbound() string {
	return withPort(f.statusPort(), f.traffic("excludeInboundPorts", "excludeInboundPorts"))
}

// interfaces are notes that are handed on as they are.
var interfaces = []string{"traffic.sidecar.istio.io/kubevirtInterfaces", "istio.io/reroute-virtual-interfaces", "traffic.sidecar.istio.io/excludeInterfaces"}

// cniNotes tell the node's plugin what to redirect.
func (f *form) cniNotes() {
	notes := f.pod.Annotations
	if f.values.text("pilot", "cni", "provider") == "multus" {
		const multus = "k8s.v1.cni.cncf.io/networks"
		notes[multus] = withNetwork(f.ObjectMeta.Annotations[multus], "default/istio-cni")
	}
	const prefix = "traffic.sidecar.istio.io/"
	notes[modeNote] = f.redirection()
	for note, value := range map[string]string{"includeOutboundIPRanges": "includeIPRanges", "excludeOutboundIPRanges": "excludeIPRanges"} {
		if v := f.traffic(note, value); v != "" {
			notes[prefix+note] = v
		}
	}
	notes[prefix+"includeInboundPorts"] = f.traffic("includeInboundPorts", "includeInboundPorts")
	notes[prefix+"excludeInboundPorts"] = f.excludedInbound()
	for _, name := range []string{"includeOutboundPorts", "excludeOutboundPorts"} {
		if f.traffics(name) {
			notes[prefix+name] = f.traffic(name, name)
		}
	}
	for _, name := range interfaces {
		if v := f.ObjectMeta.Annotations[name]; v != "" {
			notes[name] = v
		}
	}
}

// redirector is the container that redirects traffic to the proxy, or looks whether that was done.
func (f *form) redirector(cni, tproxy bool) corev1.Container {
	c := corev1.Container{
		Name: initName, Image: f.image(f.values.global("proxy_init", "image"), f.ProxyInitImage),
		Args: f.redirectorArguments(cni, tproxy), Resources: f.resources(),
	}
	if cni {
		c.Name = validationName
	}
	f.pull(&c)
	env := &variables{}
	f.metadata(env)
	c.Env = *env
	c.SecurityContext = f.redirectorSecurity(cni, tproxy)
	return c
}

func (f *form) redirectorArguments(cni, tproxy bool) []string {
	user := fmt.Sprint(f.ProxyUID)
	if tproxy {
		user = fmt.Sprint(proxyID)
	}
	listen := func(port, usual int32) string { return fmt.Sprint(cmp.Or(port, usual)) }
	args := []string{
		"istio-iptables", "-p", listen(f.MeshConfig.GetProxyListenPort(), 15001), "-z", listen(f.MeshConfig.GetProxyInboundListenPort(), 15006),
		"-u", user, "-m", f.redirection(),
		"-i", f.traffic("includeOutboundIPRanges", "includeIPRanges"), "-x", f.traffic("excludeOutboundIPRanges", "excludeIPRanges"),
		"-b", f.traffic("includeInboundPorts", "includeInboundPorts"), "-d", strings.TrimSuffix("15090,15021,"+f.excludedInbound(), ","),
	}
	for _, o := range []struct{ flag, name string }{{"-q", "includeOutboundPorts"}, {"-o", "excludeOutboundPorts"}} {
		if f.traffics(o.name) {
			args = append(args, o.flag, f.traffic(o.name, o.name))
		}
	}
	for i, name := range []string{interfaces[1], interfaces[0]} {
		_, newer := f.ObjectMeta.Annotations[interfaces[1]]
		if v, ok := f.ObjectMeta.Annotations[name]; ok && (i == 0 || !newer) {
			args = append(args, "-k", v)
		}
	}
	if v, ok := f.ObjectMeta.Annotations[interfaces[2]]; ok {
		args = append(args, "-c", v)
	}
	args = append(args, f.logLevel())
	if f.values.is("global", "logAsJson") {
		args = append(args, "--log_as_json")
	}
	switch {
	case cni:
		args = append(args, "--run-validation", "--skip-rule-apply")
	case f.values.is("global", "proxy_init", "forceApplyIptables"):
		args = append(args, "--force-apply")
	}
	if f.values.is("global", "nativeNftables") {
		args = append(args, "--native-nftables")
	}
	return args
}

func (f *form) redirectorSecurity(cni, tproxy bool) *corev1.SecurityContext {
	privileged := f.values.is("global", "proxy", "privileged")
	user, group, plain := int64(0), int64(0), cni
	s := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &privileged, Privileged: &privileged, ReadOnlyRootFilesystem: &plain, RunAsNonRoot: &plain,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: f.seccomp(),
	}
	switch {
	case !cni:
		s.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW"}
	case tproxy:
		user, group = proxyID, proxyID
	default:
		user, group = f.ProxyUID, f.ProxyGID
	}
	s.RunAsUser, s.RunAsGroup = &user, &group
	return s
}

// gateway is a proxy that is the workload.
func gateway(f *form) {
	f.identity(0)
	f.pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}}
	if v := f.values.at("gateways", "securityContext"); truth(v) {
		f.pod.Spec.SecurityContext = nil
		f.convert("gateways.securityContext", v, &f.pod.Spec.SecurityContext)
	}
	c := corev1.Container{
		Name: proxyName, Image: f.image(f.values.proxy("image"), f.ProxyImage), Ports: port("http-envoy-prom", 15090), Args: f.arguments("router"),
		Lifecycle: f.lifecycle(), SecurityContext: &corev1.SecurityContext{RunAsUser: &f.ProxyUID, RunAsGroup: &f.ProxyGID}, Env: f.environment(true),
		VolumeMounts: f.storage("gateway"),
	}
	c.ReadinessProbe = ready(15021, f.number("", f.values.proxy("readinessInitialDelaySeconds")),
		f.number("", f.values.proxy("readinessPeriodSeconds")), f.number("", f.values.proxy("readinessFailureThreshold")))
	f.pull(&c)
	f.pullSecrets()
	f.pod.Spec.Containers = append(f.pod.Spec.Containers, c)
}

const rewriteNote = "sidecar.istio.io/rewriteAppHTTPProbers"

// grpcAgent is an agent, without Envoy, for workloads that speak gRPC by xDS themselves.
func grpcAgent(f *form) {
	f.identity(0)
	f.pod.Annotations[rewriteNote] = "false"
	mounts := f.storage("grpc-agent")
	c := corev1.Container{
		Name: proxyName, Image: f.image(f.values.proxy("image"), f.ProxyImage), Ports: port("mesh-metrics", 15020), Args: f.arguments("sidecar"),
		Lifecycle: command("pilot-agent", "wait", "--url=http://localhost:15020/healthz/ready"), Env: f.agentEnvironment(), VolumeMounts: mounts,
	}
	if f.statusPort() != "0" {
		c.ReadinessProbe, c.Resources = f.readiness(15020), f.resources()
	}
	f.pull(&c)
	f.pullSecrets()
	f.pod.Spec.Containers = append(f.pod.Spec.Containers, c)
	for _, name := range f.apps() {
		app := corev1.Container{Name: name, Env: []corev1.EnvVar{
			{Name: "GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT", Value: "true"}, {Name: "GRPC_XDS_BOOTSTRAP", Value: "/etc/istio/proxy/grpc-bootstrap.json"},
		}}
		for _, name := range []string{"istio-data", "istio-xds", "gke-workload-certificate", "workload-certs"} {
			for _, m := range mounts {
				if m.Name == name {
					app.VolumeMounts = append(app.VolumeMounts, m)
				}
			}
		}
		f.pod.Spec.Containers = append(f.pod.Spec.Containers, app)
	}
}

func (f *form) agentEnvironment() []corev1.EnvVar {
	v := &variables{}
	v.set("ISTIO_META_GENERATOR", "grpc")
	v.set("OUTPUT_CERTS", "/var/lib/istio/data")
	if f.InboundTrafficPolicyMode == "localhost" {
		v.set("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")
	}
	f.authority(v)
	place(v)
	v.set("PROXY_CONFIG", protoToJSON(f.ProxyConfig))
	v.set("ISTIO_META_POD_PORTS", f.ports())
	v.set("ISTIO_META_APP_CONTAINERS", strings.Join(f.apps(), ","))
	f.cluster(v)
	v.setIf("ISTIO_META_NETWORK", f.values.text("global", "network"))
	f.workload(v, f.DeploymentMeta.Name)
	f.domain(v)
	f.metadata(v)
	v.set("ISTIO_META_DNS_CAPTURE", "false")
	v.set("DISABLE_ENVOY", "true")
	return *v
}

// bootstrapScript writes what a client of gRPC reads to find the control plane.
const bootstrapScript = `cat > /var/lib/grpc/data/bootstrap.json <<EOF
{"xds_servers": [{"server_uri": "dns:///istiod.${ISTIO_NAMESPACE}.svc:15010", "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
 "node": {"id": "sidecar~${INSTANCE_IP}~${POD_NAME}.${POD_NAMESPACE}~cluster.local", "metadata": {"GENERATOR": "grpc"}}}
EOF`

// grpcSimple gives workloads that speak gRPC by xDS themselves a file with where to find it, and no
// agent.
func grpcSimple(f *form) {
	const name, path = "grpc-io-proxyless-bootstrap", "/var/lib/grpc/data/"
	mounts := []corev1.VolumeMount{{Name: name, MountPath: path}}
	f.pod.Annotations = map[string]string{rewriteNote: "false"}
	env := &variables{}
	env.field("INSTANCE_IP", "status.podIP")
	env.field("POD_NAME", "metadata.name")
	env.field("POD_NAMESPACE", "metadata.namespace")
	env.set("ISTIO_NAMESPACE", f.values.text("global", "istioNamespace"))
	f.pod.Spec.InitContainers = []corev1.Container{{
		Name: "grpc-bootstrap-init", Image: "busybox:1.28", VolumeMounts: mounts, Env: *env, Command: []string{"sh", "-c", bootstrapScript},
	}}
	for _, c := range f.Spec.Containers {
		f.pod.Spec.Containers = append(f.pod.Spec.Containers, corev1.Container{Name: c.Name, VolumeMounts: mounts, Env: []corev1.EnvVar{
			{Name: "GRPC_XDS_BOOTSTRAP", Value: path + "bootstrap.json"},
			{Name: "GRPC_GO_LOG_VERBOSITY_LEVEL", Value: "99"}, {Name: "GRPC_GO_LOG_SEVERITY_LEVEL", Value: "info"},
		}})
	}
	f.pod.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: directory("")}}
}
