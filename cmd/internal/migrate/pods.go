package migrate

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
)

// kept are fields of a pod's spec that are as good for ours: where it runs, and as what.
var kept = []string{
	"affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "tolerations", "topologySpreadConstraints",
	"runtimeClassName", "schedulerName", "dnsPolicy", "dnsConfig",
}

// tied are annotations and labels that are about istiod's own release, traffic or containers, and
// are not handed on.
var tied = []string{
	"kubectl.kubernetes.io/", "deployment.kubernetes.io/", "sidecar.istio.io/", "istio.io/",
	"install.operator.istio.io/", "operator.istio.io/", "prometheus.io/", "helm.sh/", "app.kubernetes.io/",
	"meta.helm.sh/",
}

// copied makes a patch for the Deployment of deploy/kubernetes of what istiod's pods have of their
// cluster: how many there are, where they run, and what they may take.
func (m *maker) copied() error {
	spec, container := m.of.Spec.Template.Spec, discovery(m.of)
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	var all, pod map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	pod = map[string]any{}
	var names []string
	for _, field := range kept {
		v, ok := all[field]
		if !ok || field == "dnsPolicy" && v == string(corev1.DNSClusterFirst) || field == "schedulerName" && v == corev1.DefaultSchedulerName {
			continue
		}
		pod[field] = v
		names = append(names, field)
	}
	if r := container.Resources; len(r.Limits)+len(r.Requests) > 0 {
		pod["containers"] = []any{map[string]any{"name": "coxswain", "resources": r}}
		names = append(names, "resources")
	}
	template := map[string]any{"spec": pod}
	if notes := own(m.of.Spec.Template.Annotations); len(notes) > 0 {
		template["metadata"] = map[string]any{"annotations": notes}
		names = append(names, "annotations")
	}
	patch := map[string]any{"template": template}
	if m.of.Spec.Replicas != nil {
		patch["replicas"] = *m.of.Spec.Replicas
		names = append(names, "replicas")
	}
	if len(names) == 0 {
		return nil
	}
	m.Pods, err = yaml.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "coxswain", "namespace": m.Namespace}, "spec": patch,
	})
	if slices.Contains(names, "resources") {
		m.out("resources of its pods", Same, "they are copied; what it takes here is in docs/performance.md: look at them again after some days")
	}
	slices.Sort(names)
	m.out("its pods", Same, "deployment.yaml has %s: kubectl patch deployment coxswain --patch-file deployment.yaml", strings.Join(names, ", "))
	return err
}

// own are annotations that somebody has put there, and nobody else reads for istiod's sake.
func own(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if !slices.ContainsFunc(tied, func(p string) bool { return strings.HasPrefix(k, p) }) {
			out[k] = v
		}
	}
	return out
}

// signers are those of the cluster that sign, as far as settings name them.
func (m *maker) signers() (names []string) {
	if s, _ := m.Settings["k8sSigner"].(string); s != "" {
		names = append(names, s)
	}
	if d, _ := m.Settings["certSignerDomain"].(string); d != "" {
		names = append(names, d+"/*")
	}
	if p, _ := m.Settings["pilotCertProvider"].(string); strings.HasPrefix(p, "k8s.io/") {
		names = append(names, strings.TrimPrefix(p, "k8s.io/"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// several adds what Multi-Cluster Services need, where istiod is told to have them.
func (m *maker) several() {
	on := func(name string) bool { return strings.EqualFold(m.says[name], "true") || m.says[name] == "1" }
	group := m.says["MCS_API_GROUP"]
	if group == "" {
		group = "multicluster.x-k8s.io"
	}
	if on("ENABLE_MCS_HOST") && on("ENABLE_MCS_SERVICE_DISCOVERY") {
		m.set.add("mcs", "registry", "registry/mcs", nil)
		m.out("names of several clusters", Plugin, "registry/mcs makes them")
	}
	if on("ENABLE_MCS_AUTO_EXPORT") {
		config := map[string]any{"group": group}
		if v := m.says["MCS_API_VERSION"]; v != "" {
			config["version"] = v
		}
		m.set.add("exports", "controller", "controller/exports", map[string]any{"config": config})
		m.exports, m.renamed["group/multicluster.x-k8s.io"] = true, []string{group}
		m.out("exports of services", Plugin, "controller/exports makes them in this cluster; for others see plugins/controller/exports/README.md")
	}
	if !on("ENABLE_MCS_SERVICE_DISCOVERY") {
		return
	}
	name := "coxswain-multicluster" + webhooks.Suffix(m.Revision)
	role := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{
			"apiGroups": []string{group}, "resources": []string{"serviceexports", "serviceimports"}, "verbs": []string{"list", "watch"},
		}},
	}
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": m.Account, "namespace": m.Namespace}},
	}
	m.multiCluster = []any{role, binding}
}
