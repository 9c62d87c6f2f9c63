package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// kialiImage is where Kiali's server is.
const kialiImage = "quay.io/kiali/kiali"

// kialiObjects run Kiali as an administrator who is asked by anybody, beside a Prometheus that has
// nothing: what Envoys count in Istio's names needs a filter that stock Envoys haven't.
const kialiObjects = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: kiali, namespace: istio-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kiali}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: kiali, namespace: istio-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kiali, namespace: istio-system}
data:
  config.yaml: |
    auth: {strategy: anonymous}
    external_services:
      custom_dashboards: {enabled: false}
      grafana: {enabled: false}
      istio: {istiod_polling_interval_seconds: 4}
      prometheus: {url: "http://prometheus.istio-system:9090"}
    server: {observability: {metrics: {enabled: false}}, web_root: /kiali}
---
{apiVersion: v1, kind: Service, metadata: {name: prometheus, namespace: istio-system}, spec: {selector: {app: prometheus}, ports: [{port: 9090}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus, namespace: istio-system, labels: {app: prometheus}}
spec:
  selector: {matchLabels: {app: prometheus}}
  template:
    metadata: {labels: {app: prometheus, sidecar.istio.io/inject: "false"}}
    spec: {containers: [{name: prometheus, image: example.com/server, args: [prometheus, ":9090"], ports: [{containerPort: 9090}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: kiali, namespace: istio-system, labels: {app.kubernetes.io/part-of: kiali}}
spec: {selector: {app: kiali}, ports: [{name: http, port: 20001}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kiali, namespace: istio-system, labels: {app: kiali}}
spec:
  selector: {matchLabels: {app: kiali}}
  template:
    metadata: {labels: {app: kiali, sidecar.istio.io/inject: "false"}}
    spec:
      serviceAccountName: kiali
      containers:
      - name: kiali
        image: quay.io/kiali/kiali:v1.89.0
        ports: [{containerPort: 20001}]
        readinessProbe: {httpGet: {path: /kiali/healthz, port: 20001}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /etc/kiali}, {name: console, mountPath: /opt/kiali/console}]
      volumes: [{name: config, configMap: {name: kiali}}, {name: console, emptyDir: {}}]
---
{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: outside, namespace: shop},
 spec: {hosts: [outside.example], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS}}
`

// asked are what Kiali's pages ask its server, POD in the place of the name of the pod web.
var asked = []string{
	"istio/status", "istio/certs", "istio/permissions?namespaces=shop", "mesh/graph", "mesh/tls", "mesh/canaries/status",
	"status", "config", "namespaces", "namespaces/shop/info", "namespaces/shop/tls",
	"clusters/services?namespaces=shop,istio-system&istioResources=true",
	"clusters/workloads?namespaces=shop,istio-system&istioResources=true",
	"clusters/apps?namespaces=shop,istio-system&istioResources=true",
	"namespaces/shop/services/web?validate=true", "namespaces/shop/services/outside.example?validate=true",
	"namespaces/shop/workloads/web?validate=true", "namespaces/shop/workloads/cart?validate=true",
	"namespaces/istio-system/workloads/istiod?validate=true",
	"namespaces/shop/apps/web", "namespaces/shop/pods/POD", "clusters/health?namespaces=shop&type=workload",
	"clusters/health?namespaces=shop&type=service", "clusters/health?namespaces=shop&type=app",
	"namespaces/shop/pods/POD/config_dump/clusters", "namespaces/shop/pods/POD/config_dump/listeners",
	"namespaces/shop/pods/POD/config_dump/routes", "namespaces/shop/pods/POD/config_dump/bootstrap",
	"istio/config?validate=true", "istio/validations?namespaces=shop,istio-system", "namespaces/shop/validations",
	"namespaces/shop/istio/virtualservices/web?validate=true&help=true",
	"namespaces/shop/istio/virtualservices/lost?validate=true", "namespaces/shop/istio/gateways/lost?validate=true",
}

// TestKiali: Kiali's server shows of Coxswain, and of pods that it has injected, what it shows of
// istiod; what differs docs/differences.md says.
func TestKiali(t *testing.T) {
	need.All(t)
	server := filepath.Join(program.Built(t, "test/tools/kiali", "kiali", "kiali"), "kiali")
	all := map[string]map[string]string{}
	for _, name := range []string{istiod, coxswain} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name, map[string]node.Image{kialiImage: {
				Entrypoint: []string{"/opt/kiali/kiali"}, Args: []string{"-config", "/etc/kiali/config.yaml"},
				Env:   []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"},
				Files: map[string]string{"/opt/kiali/kiali": server},
			}})
			all[name] = w.kiali(t)
		})
	}
	if t.Failed() {
		return
	}
	was, is := planeVersion(t, all[istiod]), planeVersion(t, all[coxswain])
	if was == is || !listed(t, "Kiali: the version of the control plane") {
		t.Errorf("the version is %q, istiod's %q, or docs/differences.md has no row about it", is, was)
	}
	for about, d := range kialiOtherwise {
		was, is := all[istiod][d.asked], all[coxswain][d.asked]
		if strings.Contains(was, d.says) || !strings.Contains(is, d.says) || !listed(t, about) {
			t.Errorf("%s: only coxswain says %q: not so, or docs/differences.md has no row about it", about, d.says)
		}
	}
	for _, a := range asked {
		was, is := alike(t, all[istiod][a]), alike(t, all[coxswain][a])
		if difference := cmp.Diff(lines(was), lines(is)); difference != "" {
			t.Errorf("%s: istiod (-), coxswain (+):\n%s", a, difference)
		}
	}
}

// kialiOtherwise is what Kiali shows of Coxswain alone, by the rows of docs/differences.md.
var kialiOtherwise = map[string]struct{ asked, says string }{
	"Kiali: kinds of the Gateway API": {"config", `"gatewayAPIEnabled": true`},
	"Kiali: the workload of the control plane": {
		"namespaces/istio-system/workloads/istiod?validate=true", `"image": "` + planeImage},
}

// alike is an answer without what differs so, and without what is never the same.
func alike(t *testing.T, text string) string {
	t.Helper()
	var is any
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	without(is)
	return strings.NewReplacer(planeImage+":v1", "docker.io/istio/pilot:1.31.0", `"cluster": ""`, `"cluster": "Kubernetes"`).
		Replace(indented(t, is))
}

// planeVersion takes the control plane's version from the graph of the mesh, and returns it.
func planeVersion(t *testing.T, answers map[string]string) (version string) {
	t.Helper()
	var is struct {
		Elements struct {
			Nodes []struct {
				Data struct{ InfraType, Version string }
			}
		}
	}
	if err := json.Unmarshal([]byte(answers["mesh/graph"]), &is); err != nil {
		t.Fatal(err)
	}
	for _, n := range is.Elements.Nodes {
		if n.Data.InfraType == "istiod" {
			version = n.Data.Version
		}
	}
	if version == "" {
		t.Fatalf("the mesh has no control plane: %s", answers["mesh/graph"])
	}
	answers["mesh/graph"] = strings.ReplaceAll(answers["mesh/graph"], fmt.Sprintf(`"version": %q`, version), `"version": "…"`)
	return version
}

// apart are keys of what differs, or of what Kiali has now and then (apiVersion; as it names the
// cluster of a service, or doesn't).
var apart = []string{
	"apiVersion", "resourceVersion", "uid", "timestamp", "pod-template-hash", "managedFields",
	"app.kubernetes.io/version", "helm.sh/chart", "release", "gatewayAPIEnabled", "k8sgateways", "k8sreferencegrants",
}

// without takes the keys of apart away.
func without(is any) {
	switch is := is.(type) {
	case map[string]any:
		maps.DeleteFunc(is, func(k string, _ any) bool { return slices.Contains(apart, k) })
		for _, v := range is {
			without(v)
		}
	case []any:
		for _, v := range is {
			without(v)
		}
	}
}

// kiali is what Kiali answers, once all proxies are in sync for it.
func (w *world) kiali(t *testing.T) map[string]string {
	t.Helper()
	w.put(t, "kiali.yaml", kialiObjects)
	w.must(t, "kubectl apply --filename kiali.yaml; kubectl rollout status deployment/kiali --namespace istio-system --timeout 120s")
	list, err := w.cluster.Client(t).CoreV1().Pods("istio-system").List(t.Context(), metav1.ListOptions{LabelSelector: "app=kiali"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %d pods of Kiali", err, len(list.Items))
	}
	w.pods["kiali"] = list.Items[0].Name
	base := "http://" + list.Items[0].Status.PodIP + ":20001/kiali/api/"
	wait.For(t, "both workloads are in sync for Kiali, and it knows the version of the control plane", func() error {
		for _, name := range []string{"web", "cart"} {
			text := ask(t, base+"namespaces/shop/workloads/"+name)
			if !strings.Contains(text, `"proxyStatus":{"CDS":"Synced","EDS":"Synced","LDS":"Synced","RDS":"Synced"}`) {
				return fmt.Errorf("%s: %s", name, text)
			}
		}
		mesh := ask(t, base+"mesh/graph") // it has for ten seconds what was found out last
		if planeVersion(t, map[string]string{"mesh/graph": mesh}) == "Unknown" {
			return fmt.Errorf("the version isn't known: %s", mesh)
		}
		return nil
	})
	out := map[string]string{}
	for _, a := range asked {
		text := w.plain(ask(t, base+strings.ReplaceAll(a, "POD", w.pods["web"])))
		for _, m := range assigned {
			text = m.ReplaceAllString(text, "…")
		}
		out[a] = sorted(t, text)
	}
	return out
}

// assigned are addresses of Services, and names of ReplicaSets.
var assigned = []*regexp.Regexp{regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`), regexp.MustCompile(`\bistiod-[0-9a-z]{8,10}\b`)}

// ask is what a URL answers, whatever its code, with it before it where it isn't 200.
func ask(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Sprintf("%q", fmt.Sprint(r.StatusCode, ": ", string(text)))
	}
	return string(text)
}

// sorted is a JSON text with its lists in order, which Kiali has as they come.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var is any
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return indented(t, is)
}

// indented has each value on a line of its own.
func indented(t *testing.T, is any) string {
	t.Helper()
	out, err := json.MarshalIndent(ordered(is), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func ordered(is any) any {
	switch is := is.(type) {
	case map[string]any:
		for k, v := range is {
			is[k] = ordered(v)
		}
	case []any:
		for i, v := range is {
			is[i] = ordered(v)
		}
		slices.SortStableFunc(is, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return is
}
