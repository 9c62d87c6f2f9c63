package render

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// volumes are the ones that a proxy has, with their mounts.
type volumes struct {
	all    []corev1.Volume
	mounts []corev1.VolumeMount
}

// mount adds a volume that is mounted at a path; a source of nothing is a directory that is empty.
func (v *volumes) mount(name, path string, source corev1.VolumeSource) {
	v.all = append(v.all, corev1.Volume{Name: name, VolumeSource: source})
	v.mounts = append(v.mounts, corev1.VolumeMount{Name: name, MountPath: path})
}

func directory(medium corev1.StorageMedium) corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}
}

func configMap(name string, optional bool) corev1.VolumeSource {
	c := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	if optional {
		c.Optional = &optional
	}
	return corev1.VolumeSource{ConfigMap: c}
}

// certificates is where workloads' certificates come from that others sign.
func (f *form) certificates(empty corev1.VolumeSource) (name string, source corev1.VolumeSource, readOnly bool) {
	if f.values.text("global", "caName") == "GkeWorkloadCertificate" {
		return "gke-workload-certificate", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "workloadcertificates.security.cloud.google.com"}}, true
	}
	return "workload-certs", empty, false
}

// roots is where the control plane's roots are.
func (f *form) roots() corev1.VolumeSource {
	name := f.values.text("global", "trustBundleName")
	if f.values.at("pilot", "env", "ENABLE_CLUSTER_TRUST_BUNDLE_API") != true {
		return configMap(cmp.Or(name, "istio-ca-root-cert"), false)
	}
	bundle := "istio.io:istiod-ca:" + cmp.Or(name, "root-cert")
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: &bundle, Path: "root-cert.pem"}},
	}}}
}

func podInfo() corev1.VolumeSource {
	item := func(name string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: name, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + name}}
	}
	return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{item("labels"), item("annotations")}}}
}

// token is the service account's, for the control plane.
func (f *form) token() corev1.VolumeSource {
	seconds := int64(12 * 60 * 60)
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Path: "istio-token", ExpirationSeconds: &seconds,
			Audience: f.values.text("global", "sds", "token", "aud"),
		},
	}}}}
}

// mountOrder is the order of mounts, which is Istio's, so that pods can be compared.
var mountOrder = []string{
	"workload-socket", "credential-socket", "gke-workload-certificate", "workload-certs", "istiod-ca-cert", "istio-ca-crl", "istio-data",
	"custom-bootstrap-volume", "istio-envoy", "istio-xds", "istio-token", "istio-certs", "istio-podinfo",
}

// storage gives a pod the volumes of a role, and returns their mounts.
func (f *form) storage(role string) []corev1.VolumeMount {
	v := &volumes{}
	first, agent := corev1.VolumeSource{}, role == "grpc-agent"
	empty := first
	if role == "gateway" || role == managedName {
		empty = directory("")
	}
	v.mount("workload-socket", "/var/run/secrets/workload-spiffe-uds", first)
	if !agent {
		v.mount("credential-socket", "/var/run/secrets/credential-uds", empty)
	}
	name, source, readOnly := f.certificates(empty)
	v.mount(name, "/var/run/secrets/workload-spiffe-credentials", source)
	v.mounts[len(v.mounts)-1].ReadOnly = readOnly
	f.overridden(v, agent)
	if agent {
		v.mount("istio-xds", "/etc/istio/proxy", directory(corev1.StorageMediumMemory))
	} else {
		v.mount("istio-envoy", "/etc/istio/proxy", directory(corev1.StorageMediumMemory))
	}
	v.mount("istio-data", "/var/lib/istio/data", directory(""))
	v.mount("istio-podinfo", "/etc/istio/pod", podInfo())
	v.mount("istio-token", "/var/run/secrets/tokens", f.token())
	own := f.values.text("global", "pilotCertProvider") == "istiod"
	if own {
		v.mount("istiod-ca-cert", "/var/run/secrets/istio", f.roots())
	}
	if role == sidecarName {
		f.revoked(v, own)
	}
	if role != managedName {
		f.secrets(v)
	}
	f.pod.Spec.Volumes = v.all
	v.sorted()
	f.users(v, role)
	return v.mounts
}

// sorted puts mounts into their order, and returns them.
func (v *volumes) sorted() []corev1.VolumeMount {
	slices.SortStableFunc(v.mounts, func(a, b corev1.VolumeMount) int {
		return cmp.Compare(slices.Index(mountOrder, a.Name), slices.Index(mountOrder, b.Name))
	})
	return v.mounts
}

// overridden is a bootstrap of Envoy's that the pod brings.
func (f *form) overridden(v *volumes, volumeOnly bool) {
	name, ok := f.ObjectMeta.Annotations[bootstrapNote]
	if !ok {
		return
	}
	v.mount("custom-bootstrap-volume", "/etc/istio/custom-bootstrap", configMap(name, false))
	if volumeOnly {
		v.mounts = v.mounts[:len(v.mounts)-1]
	}
}

// revoked are lists of certificates that don't count any more.
func (f *form) revoked(v *volumes, mounted bool) {
	v.mount("istio-ca-crl", "/var/run/secrets/istio/crl", configMap(cmp.Or(f.values.text("pilot", "crlConfigMapName"), "istio-ca-crl"), true))
	if !mounted {
		v.mounts = v.mounts[:len(v.mounts)-1]
	}
}

// secrets are certificates in Secrets.
func (f *form) secrets(v *volumes) {
	yes := true
	if f.values.is("global", "mountMtlsCerts") {
		name := "istio." + cmp.Or(f.Spec.ServiceAccountName, "default")
		v.mount("istio-certs", "/etc/certs/", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: &yes}})
		v.mounts[len(v.mounts)-1].ReadOnly = true
	}
}

// users are volumes that the pod asks for by annotations, and lightstep's.
func (f *form) users(v *volumes, role string) {
	if role == "gateway" || role == managedName {
		return
	}
	custom(f, "sidecar.istio.io/userVolume", func(name string, source corev1.VolumeSource) {
		f.pod.Spec.Volumes = append(f.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	})
	custom(f, "sidecar.istio.io/userVolumeMount", func(name string, m corev1.VolumeMount) {
		m.Name = name
		v.mounts = append(v.mounts, m)
	})
}
