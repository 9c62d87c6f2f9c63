package kube_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// entry is a ServiceEntry.
func entry(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: shop, finalizers: [example.com/kept]}
spec: %s`, name, spec)
}

// newStore starts an API server that has the kind ServiceEntry.
func newStore(t *testing.T) *kube.Cluster {
	t.Helper()
	c := kube.Start(t)
	c.Apply(t, documents(namespace, definitions(t)["ServiceEntry"]))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	return c
}

// TestStatusIsWritten: a controller says in the status of each ServiceEntry that it has seen it,
// through the core and config/kubernetes, which is away for a while.
func TestStatusIsWritten(t *testing.T) {
	c := newStore(t)
	controller := filepath.Join(t.TempDir(), "seen")
	if out, err := exec.Command("go", "build", "-o", controller, "../../examples/controller-seen").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	write := func(allow string) {
		put(t, file, fmt.Sprintf(`%s
  - {name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %q}}
  - {name: seen, kind: controller, process: {command: %q}, insecure: true%s}
`, set, c.Kubeconfig, controller, allow))
	}
	write("")
	plane := mesh.Start(t, program, t.TempDir(), "--plugins", file)
	plane.Ready(t)
	c.Apply(t, entry("web", "{hosts: [web.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	wait.For(t, "the log says what must be granted", func() error {
		if !strings.Contains(plane.Log(), "allow: {store: [networking.istio.io/ServiceEntry]}") {
			return fmt.Errorf("%s", plane.LastLines(10))
		}
		return nil
	})
	write(", allow: {store: [networking.istio.io/ServiceEntry]}")
	seen := func(name string) {
		t.Helper()
		wait.For(t, "the status of "+name+" says that it was seen", func() error {
			got := c.Kubectl(t, "get", "serviceentries", name, "-n", "shop", "-o",
				"jsonpath={.status.conditions[*].type} {.metadata.finalizers[0]} {.spec.hosts[0]}")
			if got != "example.com/Seen example.com/kept "+name+".example" {
				return fmt.Errorf("it says %q", got)
			}
			return nil
		})
	}
	seen("web")
	c.Down()
	c.Up(t)
	if code := exec.Command("kill", "-9", fmt.Sprint(plane.Plugins(t)["crds"].PID)).Run(); code != nil {
		t.Fatal(code)
	}
	c.Apply(t, entry("api", "{hosts: [api.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	seen("api")
}

const (
	taken = `{"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry", "metadata": {"namespace": "shop"},
	"spec": {"hosts": ["a.example"], "resolution": "DNS", "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]},
	"status": {"conditions": [{"type": "example.com/Seen", "status": "True"}], "addresses": [{"value": "240.240.0.1"}]}}`
	refused = `{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"namespace": "shop"},
	"spec": {"hosts": [], "ports": [{"number": 80, "name": "http"}]}}`
)

// TestStoreConformance: config/kubernetes is a store as any other.
func TestStoreConformance(t *testing.T) {
	c := newStore(t)
	plugintest.Conform(t, plugintest.Suite{
		Kind: "config", Config: fmt.Sprintf(`{"kubeconfig": %q}`, c.Kubeconfig), Object: taken, BadObject: refused,
	}, plugintest.Process(process.Command{Path: program, Args: []string{"plugin", "config/kubernetes"}}))
}
