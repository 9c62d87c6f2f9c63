package gatewayapi

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// newMesh is a cluster in whose namespaces with the label istio-injection pods get sidecars: by the
// control plane's webhook, with Istio's own agent and interception, and a stock Envoy. It talks by
// mutual TLS, with certificates of the control plane's CA.
func newMesh(t *testing.T) *world {
	t.Helper()
	w := &world{tools: suite(t)}
	certificate := t.TempDir()
	authority.New(t).IssueLocal(t, certificate)
	peer := program.Built(t, "test/peer", "peer", "pilot-agent", "echo/server", "echo/client")
	w.cluster = kube.StartWithAccounts(t)
	w.start(t, map[string]node.Image{
		"docker.io/istio/proxyv2": sidecar(t, filepath.Join(peer, "pilot-agent")),
		"registry.k8s.io/gateway-api/echo-advanced": {Entrypoint: []string{"/usr/local/bin/server"}, Files: map[string]string{
			"/usr/local/bin/server": filepath.Join(peer, "echo/server"), "/usr/local/bin/client": filepath.Join(peer, "echo/client"),
			"/cert.crt": filepath.Join(certificate, "cert-chain.pem"), "/cert.key": filepath.Join(certificate, "key.pem"),
		}},
	})
	// The suite waits for pods of two namespaces that only its gateways need.
	for _, n := range []string{"gateway-conformance-app-backend", "gateway-conformance-web-backend"} {
		w.cluster.Apply(t, fmt.Sprintf(waitedFor, n))
	}
	// The service that agents dial stands for the control plane, which runs on the machine itself.
	w.cluster.Apply(t, `{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system}, spec: {ports: [{name: https-dns, port: 15012}]}}`)
	at := w.cluster.Kubectl(t, "get", "service", "istiod", "-n", "istio-system", "-o", "jsonpath={.spec.clusterIP}")
	if out, err := exec.Command("ip", "addr", "replace", at+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	hooks := wait.Address(t)
	w.serve(t, "--secureGRPCAddr", at+":15012", "--httpsAddr", hooks, "--istiodCustomHost", "localhost")
	_, port, _ := strings.Cut(hooks, ":")
	out, err := exec.Command(plain, "webhooks", "--url", "https://localhost:"+port).CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w.cluster.Apply(t, string(out))
	wait.For(t, "the webhook has the root", func() error {
		if w.cluster.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}") == "" {
			return errors.New("it hasn't")
		}
		return nil
	})
	return w
}

const waitedFor = `apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: backend, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec:
      containers:
      - {name: backend, image: registry.k8s.io/gateway-api/echo-basic, env: [{name: POD_NAME, value: backend}, {name: NAMESPACE, value: %[1]s}]}
`

// sidecar is Istio's image of its agent, with a stock Envoy.
func sidecar(t *testing.T, agent string) node.Image {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../peer"
	module, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, env := envoy.Iptables(t)
	files["/usr/local/bin/pilot-agent"], files["/usr/local/bin/envoy"] = agent, envoy.Binary(t)
	files["/var/lib/istio/envoy/envoy_bootstrap_tmpl.json"] = filepath.Join(strings.TrimSpace(string(module)), "tools/packaging/common/envoy_bootstrap.json")
	return node.Image{Entrypoint: []string{"/usr/local/bin/pilot-agent"}, Files: files, Env: env}
}
