package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// variables are a container's, in order.
type variables []corev1.EnvVar

func (v *variables) set(name, value string) {
	*v = append(*v, corev1.EnvVar{Name: name, Value: value})
}

// setIf sets what is not empty.
func (v *variables) setIf(name, value string) {
	if value != "" {
		v.set(name, value)
	}
}

// field takes a value from the pod's own fields.
func (v *variables) field(name, path string) {
	*v = append(*v, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
}

// limit takes a value from the container's limits.
func (v *variables) limit(name, of string) {
	*v = append(*v, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits." + of, Divisor: resource.MustParse("1")},
	}})
}

// authority says who signs certificates.
func (f *form) authority(v *variables) {
	v.set("PILOT_CERT_PROVIDER", f.values.text("global", "pilotCertProvider"))
	name := "istiod"
	rev := f.values.text("revision")
	if rev == "" && f.Revision != "default" { // who injects signs, where values say nothing
		rev = f.Revision
	}
	if rev != "" {
		name += "-" + rev
	}
	v.set("CA_ADDR", cmp.Or(f.values.text("global", "caAddress"), name+"."+f.values.text("global", "istioNamespace")+".svc:15012"))
}

// place says which pod this is.
func place(v *variables) {
	v.field("POD_NAME", "metadata.name")
	v.field("POD_NAMESPACE", "metadata.namespace")
	v.field("INSTANCE_IP", "status.podIP")
	v.field("SERVICE_ACCOUNT", "spec.serviceAccountName")
	v.field("HOST_IP", "status.hostIP")
}

// ports are those of the pod's containers, as JSON.
func (f *form) ports() string {
	var all []string
	for _, c := range f.Spec.Containers {
		for _, p := range c.Ports {
			b, _ := json.Marshal(p)
			all = append(all, string(b))
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// compliance is a policy that the agent keeps to.
func (f *form) compliance(v *variables) {
	v.setIf("COMPLIANCE_POLICY", f.CompliancePolicy)
	if f.CompliancePolicy == "fips-140-3" {
		v.set("GODEBUG", "fips140=only")
	}
}

// cluster is where the pod's cluster is said to be.
func (f *form) cluster(v *variables) {
	v.set("ISTIO_META_CLUSTER_ID", cmp.Or(f.values.text("global", "multiCluster", "clusterName"), "Kubernetes"))
	v.field("ISTIO_META_NODE_NAME", "spec.nodeName")
}

// workload says what the pod is part of.
func (f *form) workload(v *variables, name string) {
	v.setIf("ISTIO_META_WORKLOAD_NAME", name)
	if d := f.DeploymentMeta; f.TypeMeta.APIVersion != "" && d.Name != "" {
		v.set("ISTIO_META_OWNER", fmt.Sprintf("kubernetes://apis/%s/namespaces/%s/%ss/%s",
			f.TypeMeta.APIVersion, cmp.Or(d.Namespace, "default"), strings.ToLower(f.TypeMeta.Kind), d.Name))
	}
}

// domain says which mesh this is.
func (f *form) domain(v *variables) {
	trust := cmp.Or(f.MeshConfig.GetTrustDomain(), f.values.text("global", "trustDomain"))
	v.setIf("ISTIO_META_MESH_ID", cmp.Or(f.values.text("global", "meshID"), trust))
	v.setIf("TRUST_DOMAIN", trust)
}

// metadata are those of the proxies' settings.
func (f *form) metadata(v *variables) {
	m := f.ProxyConfig.GetProxyMetadata()
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v.set(k, m[k])
	}
}

// environment are the variables of the container with the agent and Envoy.
func (f *form) environment(router bool) []corev1.EnvVar {
	v := &variables{}
	if !router && f.InboundTrafficPolicyMode == "localhost" {
		v.set("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")
	}
	f.authority(v)
	place(v)
	v.limit("ISTIO_CPU_LIMIT", "cpu")
	v.set("PROXY_CONFIG", protoToJSON(f.ProxyConfig))
	v.set("ISTIO_META_POD_PORTS", f.ports())
	if !router {
		v.set("ISTIO_META_APP_CONTAINERS", strings.Join(f.apps(), ","))
	}
	v.limit("GOMEMLIMIT", "memory")
	v.limit("GOMAXPROCS", "cpu")
	f.compliance(v)
	if router {
		v.set("ISTIO_META_APP_CONTAINERS", strings.Join(f.apps(), ","))
	}
	f.cluster(v)
	mode, name := f.ProxyConfig.GetInterceptionMode().String(), f.DeploymentMeta.Name
	if !router {
		mode = cmp.Or(f.ObjectMeta.Annotations[modeNote], mode)
		name = cmp.Or(f.ObjectMeta.Labels["service.istio.io/workload-name"], name)
	}
	v.set("ISTIO_META_INTERCEPTION_MODE", mode)
	v.setIf("ISTIO_META_NETWORK", f.values.text("global", "network"))
	f.workload(v, name)
	if _, ok := f.ObjectMeta.Annotations[bootstrapNote]; ok {
		v.set("ISTIO_BOOTSTRAP_OVERRIDE", "/etc/istio/custom-bootstrap/custom_bootstrap.json")
	}
	f.domain(v)
	if !router {
		f.tracing(v)
	}
	f.metadata(v)
	return *v
}

// tracing are variables for who collects traces.
func (f *form) tracing(v *variables) {
	if f.values.text("global", "proxy", "tracer") == "datadog" {
		custom(f, "apm.datadoghq.com/env", func(name string, value any) { v.set(name, fmt.Sprint(value)) })
	}
	v.setIf("OTEL_RESOURCE_ATTRIBUTES", attributes(f.MeshConfig, f.ObjectMeta.Annotations, f.ObjectMeta.Labels, f.DeploymentMeta.Namespace, f.Spec.Containers))
}
