package kube

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Istiod is istiod itself, an unpatched pilot-discovery, on a cluster: to compare with.
type Istiod struct {
	// XDS is its port for xDS in plain text.
	XDS string
	// HTTP is its port for debugging, and for the webhooks that the API server would ask.
	HTTP string

	program *program.Process
}

// StartIstiod starts one and waits until it is ready. The cluster has Istio's definitions and the
// namespace istio-system. The mesh's settings are those of the ConfigMap istio, if there is one;
// env is added to its environment. The test's end stops it.
func StartIstiod(t testing.TB, c *Cluster, env ...string) *Istiod {
	t.Helper()
	return StartIstiodWith(t, c, nil, env...)
}

// StartIstiodWith is StartIstiod with flags in addition.
func StartIstiodWith(t testing.TB, c *Cluster, flags []string, env ...string) *Istiod {
	t.Helper()
	return StartIstiodIn(t, c, t.TempDir(), flags, env...)
}

// StartIstiodIn is StartIstiodWith in a folder, in which it looks for files such as the root of who
// signs in its place.
func StartIstiodIn(t testing.TB, c *Cluster, dir string, flags []string, env ...string) *Istiod {
	t.Helper()
	bin := program.Built(t, "test/peer", "peer", "pilot-discovery")
	i := &Istiod{XDS: wait.Address(t), HTTP: wait.Address(t)}
	_, port, _ := strings.Cut(wait.Address(t), ":")
	cmd := command(bin, "pilot-discovery", "discovery", "--kubeconfig", c.Kubeconfig, "--grpcAddr", i.XDS, "--httpAddr", i.HTTP, "--monitoringAddr", wait.Address(t),
		"--secureGRPCAddr=", "--httpsAddr=", "--ctrlz_port", port)
	cmd.Args = append(cmd.Args, flags...)
	cmd.Dir = dir // there is no file of the mesh's settings
	cmd.Env = append(os.Environ(), "POD_NAMESPACE=istio-system", "POD_NAME=istiod-0", "CLUSTER_ID=Kubernetes", "PILOT_CERT_PROVIDER=none", "ENABLE_CA_SERVER=false")
	cmd.Env = append(cmd.Env, env...)
	i.program = program.Start(t, cmd)
	client := http.Client{Timeout: 5 * time.Second}
	wait.For(t, "istiod is ready", func() error {
		if !i.program.Runs() {
			t.Fatalf("istiod has ended: %s", i.program.Last())
		}
		answer, err := client.Get("http://" + i.HTTP + "/ready")
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("/ready says %s", answer.Status)
		}
		return nil
	})
	return i
}

// Stop ends it at once.
func (i *Istiod) Stop() { i.program.Stop() }

// EndsWithin waits until it has ended, for so long at most, and reports whether it has.
func (i *Istiod) EndsWithin(patience time.Duration) bool { return i.program.EndsWithin(patience) }

// PID of its process.
func (i *Istiod) PID() int { return i.program.PID() }

// MultiCluster are the definitions of ServiceExport and ServiceImport.
//
//go:embed mcs.yaml
var MultiCluster string

// Definitions are Istio's custom resource definitions, those of the module istio.io/api that the
// product is built with.
func Definitions(t testing.TB) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "kubernetes/customresourcedefinitions.gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// GatewayAPI are the definitions of the Gateway API (its standard channel, and of the experimental
// kinds those that are read), of the version that the istiod of test/peer is built with.
func GatewayAPI(t testing.TB) string {
	t.Helper()
	return definitions(t, "config/crd/standard/gateway.networking.k8s.io_*s.yaml", budgets)
}

// ExperimentalGatewayAPI are the same of the experimental channel, which has more fields.
func ExperimentalGatewayAPI(t testing.TB) string {
	t.Helper()
	return definitions(t, "config/crd/experimental/gateway.networking.k8s.io_*s.yaml", budgets)
}

const budgets = "config/crd/experimental/gateway.networking.x-k8s.io_xbackendtrafficpolicies.yaml"

// definitions are those of files of the Gateway API's module.
func definitions(t testing.TB, patterns ...string) string {
	t.Helper()
	dir := peerModule(t, "sigs.k8s.io/gateway-api")
	var all []string
	for _, pattern := range patterns {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "kind: CustomResourceDefinition\n") {
				all = append(all, string(text))
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the Gateway API has no definitions")
	}
	return strings.Join(all, "\n---\n")
}

// InjectorSettings is the ConfigMap by which an istiod injects pods and deploys gateways: what
// Istio's own chart makes with its defaults.
func InjectorSettings(t testing.TB) string {
	t.Helper()
	helm := filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm")
	chart := filepath.Join(peerModule(t, "istio.io/istio"), "manifests/charts/istio-control/istio-discovery")
	cmd := exec.Command(helm, "template", "istiod", chart, "--namespace", "istio-system", "--show-only", "templates/istiod-injector-configmap.yaml")
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("helm: %v\n%s", err, out)
	}
	return string(out)
}

// peerModule is the folder of a module that test/peer is built with.
func peerModule(t testing.TB, path string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(root(t), "test/peer")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil {
		t.Fatalf("%s: %v %s", path, err, out)
	}
	return module.Dir
}
