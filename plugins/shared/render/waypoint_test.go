package render

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	mesh "istio.io/api/mesh/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// manifest is Istio's template of what is deployed for a Gateway.
func manifest(t *testing.T, name string) *template.Template {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../../../test/peer"
	dir, err := list.Output()
	if err != nil || len(strings.TrimSpace(string(dir))) == 0 {
		need.Missing(t, "Istio's module is not there: go mod download in test/peer")
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "manifests/charts/istio-control/istio-discovery/files", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	of, err := template.New(name).Funcs(functions(Names{})).Funcs(template.FuncMap{inPlace: oneLine}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestWaypoints: by values and annotations that say something, pods of a waypoint are what Istio's
// template makes of them.
func TestWaypoints(t *testing.T) {
	of := manifest(t, waypointName)
	proxy := &mesh.ProxyConfig{ProxyMetadata: map[string]string{"A": "1", "B": "2"}, ConfigPath: "/x"}
	settings := &mesh.MeshConfig{TrustDomain: "example"}
	for name, c := range map[string]struct {
		values string
		notes  map[string]string
		labels map[string]string
	}{
		"usual": {},
		"placed": {values: `{global: {imagePullPolicy: Always, imagePullSecrets: [a, b], logAsJson: true, proxy: {outlierLogPath: /dev/stdout}, waypoint: {
			affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}},
			topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], nodeSelector: {a: b},
			tolerations: [{key: a, operator: Exists}], resources: {limits: {cpu: null, memory: 1Gi}, requests: {cpu: 50m}}}}}`},
		"secured": {values: `{gateways: {seccompProfile: {type: RuntimeDefault}}, global: {platform: openshift}}`},
		"where": {
			values: `{revision: canary, global: {network: n1, meshID: m, multiCluster: {clusterName: c1}, trustBundleName: roots, hub: h, tag: t-debug}}`,
			labels: map[string]string{"topology.istio.io/network": "n2"},
		},
		"authorities": {values: `{pilot: {env: {ENABLE_CLUSTER_TRUST_BUNDLE_API: true}}, global: {network: n1, caAddress: "ca:1", sds: {token: {aud: other}},
			pilotCertProvider: none, proxy: {lifecycle: {preStop: {}}}, sts: {servicePort: 1}}}`},
		"noted": {notes: map[string]string{
			imageNote: "registry/own:1", "sidecar.istio.io/logLevel": "debug", "sidecar.istio.io/componentLogLevel": "x:debug",
			"sidecar.istio.io/agentLogLevel": "all:debug", "sidecar.istio.io/proxyCPU": "1", "sidecar.istio.io/proxyImageType": "distroless",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read("", c.values, Names{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Managed(Managed{
				Namespace: "shop", Name: "mid", Account: "acc", Annotations: c.notes, Network: c.labels["topology.istio.io/network"],
				Mesh: settings, Proxy: proxy, Waypoint: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			out := &bytes.Buffer{}
			if err := of.Execute(out, map[string]any{
				"Values": map[string]any(s.values), "Name": "gw", "Namespace": "shop", "UID": "u", "DeploymentName": "mid", "ServiceAccount": "acc",
				"GatewayClass": "istio-waypoint", "GatewayNameLabel": nameNote, "ControllerLabel": "istio.io-mesh-controller", "KubeVersion": 133,
				"InfrastructureLabels": c.labels, "InfrastructureAnnotations": c.notes, "Revision": "default", "ServiceType": "ClusterIP",
				"ObjectMeta": metav1.ObjectMeta{Annotations: c.notes}, "ProxyConfig": proxy, "MeshConfig": settings, "Spec": map[string]any{"Addresses": nil},
				"ProxyImage": s.imageOf("proxy", "", c.notes), "Ports": nil,
			}); err != nil {
				t.Fatal(err)
			}
			var want *corev1.PodSpec
			for _, text := range strings.Split(out.String(), "\n---\n") {
				var d appsv1.Deployment
				if err := yaml.Unmarshal([]byte(text), &d); err == nil && d.Kind == "Deployment" {
					want = &d.Spec.Template.Spec
				}
			}
			if want == nil {
				t.Fatalf("there is no Deployment: %s", out)
			}
			for i, e := range want.Containers[0].Env {
				want.Containers[0].Env[i].Value = strings.TrimSuffix(e.Value, "\n") // of a block of YAML
			}
			if diff := cmp.Diff(spelt(t, want), spelt(t, got)); diff != "" {
				t.Errorf("-Istio's +ours:\n%s", diff)
			}
		})
	}
}

// nameNote is the label by which a Gateway's pods are selected.
const nameNote = "gateway.networking.k8s.io/gateway-name"

// spelt is a pod as YAML has it.
func spelt(t *testing.T, pod *corev1.PodSpec) string {
	t.Helper()
	text, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWaypointsOfOwn: variables of the proxies' settings count before ours, and none is there
// twice; what values or annotations say that can't be is told, with its place; and a pod that asks
// for the template is refused.
func TestWaypointsOfOwn(t *testing.T) {
	make := func(values string, proxy *mesh.ProxyConfig) (*corev1.PodSpec, error) {
		s, err := Read("", values, Names{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Managed(Managed{Namespace: "shop", Name: "mid", Account: "acc", Mesh: &mesh.MeshConfig{}, Proxy: proxy, Waypoint: true, Cluster: "east"})
	}
	pod, err := make("", &mesh.ProxyConfig{ProxyMetadata: map[string]string{"POD_NAME": "own", clusterVariable: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, e := range pod.Containers[0].Env {
		if _, twice := seen[e.Name]; twice {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name] = e.Value
	}
	if seen["POD_NAME"] != "own" || seen[clusterVariable] != "other" {
		t.Errorf("%v", seen)
	}
	if pod, err = make("", &mesh.ProxyConfig{}); err != nil {
		t.Fatal(err)
	}
	if i := pod.Containers[0].Env; !strings.Contains(spelt(t, pod), "value: east") {
		t.Errorf("the cluster is none of %v", i)
	}
	for values, place := range map[string]string{
		`{global: {waypoint: {tolerations: x}}}`: "global.waypoint.tolerations", `{global: {waypoint: {affinity: [1]}}}`: "global.waypoint.affinity",
		`{global: {waypoint: {resources: {limits: {cpu: x y}}}}}`: "global.waypoint.resources",
		`{global: {waypoint: {nodeSelector: {a: [b]}}}}`:          "global.waypoint.nodeSelector",
	} {
		if _, err := make(values, &mesh.ProxyConfig{}); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", values, err)
		}
	}
	s, err := Read("", "", Names{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{waypointName, managedName} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"inject.istio.io/templates": name}}}
		_, err := s.Inject(Request{Pod: p, Mesh: &mesh.MeshConfig{}, Proxy: &mesh.ProxyConfig{}})
		if err == nil || !strings.Contains(err.Error(), "for a Gateway") {
			t.Errorf("a pod that asks for %s: %v", name, err)
		}
	}
}
