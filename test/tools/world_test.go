package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "serve":
			serve(os.Args[2], http.NotFoundHandler())
		case "prometheus":
			serve(os.Args[2], http.HandlerFunc(nothing))
		}
	}
	node.Main()
	mesh.Plain(&binary, m.Run)
}

// serve answers requests at an address, as the program of a container. It doesn't return.
func serve(address string, handler http.Handler) {
	s := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: handler}
	fmt.Println(s.ListenAndServe())
	os.Exit(1)
}

// nothing is what a Prometheus answers that has nothing.
func nothing(w http.ResponseWriter, r *http.Request) {
	kind := map[string]string{"/api/v1/query": "vector", "/api/v1/query_range": "matrix"}[r.URL.Path]
	switch {
	case kind != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": {"resultType": %q, "result": []}}`, kind)
	case r.URL.Path != "/-/healthy":
		http.NotFound(w, r)
	}
}

// The control planes.
const istiod, coxswain = "istiod", "coxswain"

// world is a cluster with a mesh that one of them serves.
type world struct {
	name    string
	cluster *kube.Cluster
	dir     string
	env     []string
	// pods are names of pods by their Deployment's.
	pods map[string]string
	// address is that of the control plane's Service.
	address string
}

// values are what the charts of both are told.
const values = `
autoscaleEnabled: false
replicaCount: 1
env: {PILOT_ENABLE_METADATA_EXCHANGE: "false"} # Envoys other than Istio's can't
global:
  hub: docker.io/istio
  tag: 1.31.0
  proxy: {resources: {requests: {cpu: 10m, memory: 64Mi}}}
`

// planeImage is where the program is.
const planeImage = "registry.example.com/mesh/coxswain"

// newWorld begins one, and waits until its pods are ready. Images are there in addition.
func newWorld(t *testing.T, name string, images map[string]node.Image) *world {
	t.Helper()
	peers := program.Built(t, "test/peer", "peer", "pilot-discovery", "pilot-agent", "istioctl")
	helm := filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm")
	istio := module(t, "istio.io/istio")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files, env := envoy.Iptables(t)
	files["/usr/local/bin/pilot-agent"], files["/usr/local/bin/envoy"] = filepath.Join(peers, "pilot-agent"),
		envoy.Binary(t)
	files["/var/lib/istio/envoy/envoy_bootstrap_tmpl.json"] = filepath.Join(istio,
		"tools/packaging/common/envoy_bootstrap.json")
	inCluster := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443",
		"PATH=/usr/local/bin:/usr/bin:/bin"}
	all := map[string]node.Image{
		"docker.io/istio/pilot": {
			Entrypoint: []string{"/usr/local/bin/pilot-discovery"}, Env: inCluster,
			Files: map[string]string{"/usr/local/bin/pilot-discovery": filepath.Join(peers, "pilot-discovery")},
		},
		planeImage: { // as deploy/image makes it
			Entrypoint: []string{"/usr/local/bin/coxswain"}, Args: []string{"discovery"}, Env: inCluster,
			Files: map[string]string{"/usr/local/bin/coxswain": binary, "/usr/local/bin/pilot-discovery": binary},
		},
		"docker.io/istio/proxyv2": {Entrypoint: []string{"/usr/local/bin/pilot-agent"}, Env: env, Files: files},
		"example.com/server":      {Entrypoint: []string{"/bin/server"}, Files: map[string]string{"/bin/server": self}},
	}
	for image, is := range images {
		all[image] = is
	}
	w := &world{name: name, cluster: kube.StartWithAccounts(t), dir: t.TempDir(), pods: map[string]string{}}
	w.env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig, "HOME="+w.dir, "XDG_RUNTIME_DIR="+w.dir,
		"PATH="+filepath.Dir(helm)+":"+kube.Programs(t)+":"+peers+":"+os.Getenv("PATH"))
	node.Start(t, w.cluster.Kubeconfig, all).Forward(t, kube.ClusterIPs, w.cluster.Address())
	w.put(t, "values.yaml", values)
	w.put(t, "objects.yaml", objects)
	w.put(t, "cart.yaml", server("cart"))
	w.must(t, "kubectl create namespace istio-system")
	charts := filepath.Join(istio, "manifests/charts")
	if name == istiod {
		w.must(t, "helm install istio-base '"+charts+"/base' --namespace istio-system --set defaultRevision=default")
		w.must(t, "helm install istiod '"+charts+"/istio-control/istio-discovery' --namespace istio-system --values values.yaml")
	} else {
		chart, err := exec.Command("../../deploy/pack-chart.sh", helm, "v0.1.0", w.dir).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, chart)
		}
		w.must(t, "helm install istiod '"+strings.TrimSpace(string(chart))+"' --namespace istio-system --values values.yaml "+
			"--set image="+planeImage+":v1,coxswain.proxyHub=docker.io/istio,coxswain.proxyTag=1.31.0")
	}
	w.must(t, `kubectl wait --for condition=Established crd --all --timeout 120s
kubectl rollout status deployment/istiod --namespace istio-system --timeout 240s
until kubectl apply --filename objects.yaml; do sleep 1; done
kubectl rollout status deployment/web --namespace shop --timeout 240s
kubectl apply --filename cart.yaml
kubectl rollout status deployment/cart --namespace shop --timeout 240s`) // one by one, so that each has the same address in both worlds
	for _, namespace := range []string{"shop", "istio-system"} {
		list, err := w.cluster.Client(t).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			w.pods[list.Items[i].Labels["app"]] = list.Items[i].Name
		}
	}
	w.address = strings.TrimSpace(w.must(t, "kubectl get service istiod --namespace istio-system -o jsonpath={.spec.clusterIP}"))
	return w
}

func (w *world) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a script in the world's folder, where istioctl, kubectl and helm are at hand.
func (w *world) run(script string) (string, error) {
	cmd := exec.Command("timeout", "300", "/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", w.name, err, out)
	}
	return string(out), err
}

func (w *world) must(t *testing.T, script string) string {
	t.Helper()
	out, err := w.run(script)
	if err != nil {
		t.Fatalf("%s\n%v", script, err)
	}
	return out
}

// module is the folder of a module that test/peer is built with.
func module(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = "../peer"
	out, err := cmd.Output()
	var is struct{ Dir string }
	if err != nil || json.Unmarshal(out, &is) != nil {
		t.Fatalf("%s: %v %s", path, err, out)
	}
	return is.Dir
}

// objects are what is looked at beside cart: a server, what configures it, and mistakes.
var objects = strings.Join([]string{
	`{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}`,
	`{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: strict, namespace: istio-system}, spec: {mtls: {mode: STRICT}}}`,
	stock, server("web"),
	`{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: shop},
 spec: {host: web, trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}}`,
	`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop},
 spec: {hosts: [web], http: [{timeout: 3s, route: [{destination: {host: web, subset: v1}}]}]}}`,
	`{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: web, namespace: shop},
 spec: {selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {methods: [GET]}}]}]}}`,
	`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: lost, namespace: shop},
 spec: {hosts: [lost.example], http: [{route: [{destination: {host: nowhere.example}}]}]}}`,
	`{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: lost, namespace: shop},
 spec: {selector: {app: nobody}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}}`,
}, "\n---\n")

// server is a Deployment of one pod without a sidecar, which webhooks add, and its Service.
func server(name string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop, labels: {app: %[1]s, version: v1}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, version: v1}}
    spec: {containers: [{name: server, image: "example.com/server:v1", args: [serve, ":8080"], ports: [{containerPort: 8080}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: %[1]s, namespace: shop, labels: {app: %[1]s}}, spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, targetPort: 8080}]}}`, name)
}

// stock takes away filters that Envoys other than Istio's don't have.
const stock = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: stock, namespace: istio-system}
spec:
  configPatches:
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.alpn}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.stats}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.metadata_exchange}}}}}, patch: {operation: REMOVE}}
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.stats}}}}, patch: {operation: REMOVE}}
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.metadata_exchange}}}}, patch: {operation: REMOVE}}`
