package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// plain is the path of the binary under test.
var plain string

func TestMain(m *testing.M) {
	if os.Args[0] == nameServer {
		answerNames()
	}
	node.Main()
	mesh.Plain(&plain, m.Run)
}

// world is a cluster with a control plane that serves its Gateways.
type world struct {
	cluster *kube.Cluster
	plane   *mesh.Plane
	tools   string // the folder of the suite and its backend
}

// xds is where pods reach the control plane: proxies show who they are by tokens of their accounts.
const xds = node.Address + ":15010"

func newWorld(t *testing.T) *world {
	t.Helper()
	proxy := envoy.Binary(t)
	w := &world{tools: suite(t)}
	w.cluster = kube.Start(t)
	w.cluster.Controllers(t, "--controllers", "serviceaccount-controller")
	w.start(t, map[string]node.Image{
		"docker.io/istio/proxyv2": {Prepare: func(p *node.Process) error { return w.gateway(p, proxy) }, Entrypoint: []string{"pilot-agent"}},
	})
	set := filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(set, plugins(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COXSWAIN_AUTH_PLAINTEXT", "true")
	w.serve(t, "--grpcAddr", xds, "--manageGateways", "--plugins", set)
	return w
}

// suite is the folder of the suite and its backend.
func suite(t *testing.T) string {
	t.Helper()
	return program.Built(t, "test/gateway-conformance", "gateway-suite", "suite", "echo-basic", "crds")
}

// start gives the cluster the definitions, and a machine that has the suite's images and others.
func (w *world) start(t *testing.T, images map[string]node.Image) {
	t.Helper()
	w.cluster.Kubectl(t, "apply", "--server-side", "-f", filepath.Join(w.tools, "crds"))
	w.cluster.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`)
	images["registry.k8s.io/gateway-api/echo-basic"] = node.Image{
		Entrypoint: []string{"/echo-basic"},
		Files:      map[string]string{"/echo-basic": filepath.Join(w.tools, "echo-basic")},
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	images["registry.k8s.io/coredns/coredns"] = node.Image{Entrypoint: []string{nameServer}, Files: map[string]string{nameServer: own}}
	node.Start(t, w.cluster.Kubeconfig, images)
}

// serve starts the control plane, and waits until its class says what is supported.
func (w *world) serve(t *testing.T, flags ...string) {
	t.Helper()
	w.plane = mesh.Start(t, plain, "", append([]string{"--kubeconfig", w.cluster.Kubeconfig}, flags...)...)
	w.plane.Ready(t)
	wait.For(t, "the class says what is supported", func() error {
		if len(w.features(t)) == 0 {
			return errors.New("it doesn't")
		}
		return nil
	})
}

// features are those that the class says are supported.
func (w *world) features(t *testing.T) []string {
	t.Helper()
	return strings.Fields(w.cluster.Kubectl(t, "get", "gatewayclasses", "-o",
		"jsonpath={.items[?(@.metadata.name=='istio')].status.supportedFeatures[*].name}"))
}

// plugins is the set for Kubernetes, without what holds back losses: the suite deletes Gateways
// whose Envoys still run, all at once, and nobody is there to say that it is meant.
func plugins(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set map[string]any
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	list, ok := set["plugins"].([]any)
	if !ok {
		t.Fatal("the set for Kubernetes has no plugins")
	}
	for _, entry := range list {
		if e, ok := entry.(map[string]any); ok {
			e["onLoss"] = "apply"
		}
	}
	if text, err = yaml.Marshal(set); err != nil {
		t.Fatal(err)
	}
	return text
}

// gateway makes an Envoy of what a gateway's agent is told: there are no agents here.
func (w *world) gateway(p *node.Process, proxy string) error {
	kind := "router"
	if len(p.Args) > 2 {
		kind = p.Args[2]
	}
	token, err := p.Token("istio-ca")
	if err != nil {
		return err
	}
	var labels []string
	for k, v := range p.Pod.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	out, err := exec.Command(plain, "bootstrap", "--type", kind, "--name", p.Pod.Name, "--namespace",
		p.Pod.Namespace, "--ip", p.Pod.Status.PodIP, "--labels", strings.Join(labels, ","),
		"--metadata", "SERVICE_ACCOUNT="+p.Pod.Spec.ServiceAccountName, "--xds", xds, "--protocol", "delta",
		"--header", "authorization: Bearer "+token).CombinedOutput()
	if err != nil {
		return fmt.Errorf("coxswain bootstrap: %w: %s", err, out)
	}
	if out, err = withHealth(out); err != nil {
		return err
	}
	file := filepath.Join(p.Dir, "bootstrap.json")
	if err := os.WriteFile(file, out, 0o644); err != nil { // another user's process reads it
		return err
	}
	p.Args = []string{proxy, "-c", file, "--concurrency", "1", "--disable-hot-restart", "--drain-time-s", "1"}
	return nil
}

// withHealth adds to a bootstrap what an agent answers at port 15021: whether Envoy is ready.
func withHealth(bootstrap []byte) ([]byte, error) {
	var all map[string]any
	if err := json.Unmarshal(bootstrap, &all); err != nil {
		return nil, err
	}
	var more map[string]any
	if err := json.Unmarshal([]byte(health), &more); err != nil {
		return nil, err
	}
	static, _ := all["staticResources"].(map[string]any)
	if static == nil {
		static, _ = all["static_resources"].(map[string]any)
	}
	if static == nil {
		return nil, fmt.Errorf("a bootstrap without static resources")
	}
	for _, kind := range []string{"listeners", "clusters"} {
		list, _ := static[kind].([]any)
		static[kind] = append(list, more[kind].([]any)...)
	}
	return json.Marshal(all)
}

const health = `{
"clusters": [{"name": "admin-pages", "type": "STATIC", "load_assignment": {"cluster_name": "admin-pages", "endpoints": [{"lb_endpoints": [
  {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 15000}}}}]}]}}],
"listeners": [{"address": {"socket_address": {"address": "0.0.0.0", "port_value": 15021}}, "filter_chains": [{"filters": [{
  "name": "envoy.filters.network.http_connection_manager",
  "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "health",
    "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
    "route_config": {"virtual_hosts": [{"name": "health", "domains": ["*"], "routes": [
      {"match": {"path": "/healthz/ready"}, "route": {"cluster": "admin-pages", "prefix_rewrite": "/ready"}}]}]}}}]}]}]
}`
