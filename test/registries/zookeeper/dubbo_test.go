package zookeeper

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kit/zookeeper"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

const (
	// insideNamespace is set in the network namespace.
	insideNamespace = "COXSWAIN_TEST_INSIDE"
	// pod is the provider's address: Dubbo doesn't take one of loopback.
	pod                   = "10.1.2.3"
	dubboPort, triplePort = 20880, 50051
	gatewayPort           = 7080
)

// TestDubbo: a provider of Dubbo 3 (Java), which speaks dubbo and tri, registers by interface, by
// application, or both, as itself does it. It is one service, which an Envoy reaches by tri; when
// it ends there is nobody.
func TestDubbo(t *testing.T) {
	need.All(t)
	if os.Getenv(insideNamespace) == "" {
		alone(t)
		return
	}
	if out, err := exec.Command("ip", "addr", "add", pod+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, mode := range []string{"interface", "instance", "all"} {
		t.Run(mode, func(t *testing.T) { dubbo(t, mode) })
	}
}

// alone runs the test in a network namespace of its own.
func alone(t *testing.T) {
	envoy.Binary(t)
	zookeeper.Lib(t)
	if _, err := exec.LookPath("ip"); err != nil {
		need.Missing(t, "no ip: install iproute2")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := netns.Command(t, self, "-test.run=^TestDubbo$", "-test.v")
	cmd.Env = append(os.Environ(), insideNamespace+"=1", "COXSWAIN_PROGRAM="+registries.Program())
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
}

const routes = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec: {selector: {app: edge}, servers: [{port: {number: %[1]d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: default}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: %[2]s, port: {number: %[3]d}}}]}]}
`

const greeter = "version-1-0-0.group-blue.com.example.greeter.dubbo"

func dubbo(t *testing.T, mode string) {
	s := zookeeper.Start(t)
	dir, admin := t.TempDir(), wait.Address(t)
	if err := os.WriteFile(filepath.Join(dir, "routes.yaml"), []byte(fmt.Sprintf(routes, gatewayPort, greeter, triplePort)), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := os.ReadFile(filepath.Join(envoy.Root(t), "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	entry := fmt.Sprintf("%s\n  - {name: dubbo, kind: registry, builtin: registry/zookeeper, onLoss: apply, config: {servers: [%q]}}\n", set, s.Address)
	if err := os.WriteFile(plugins, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, registries.Program(), dir, "--plugins", plugins)
	plane.Ready(t)
	e := envoy.Start(t, "edge", admin,
		plane.Bootstrap(t, "--name", "edge", "--namespace", "default", "--type", "router", "--ip", "127.0.0.9", "--labels", "app=edge", "--admin", admin))
	e.Ready(t)

	java, lib := zookeeper.Lib(t)
	provider := exec.Command(java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", lib+"/*", "testdata/Provider.java", s.Address,
		fmt.Sprint(dubboPort), fmt.Sprint(triplePort), mode)
	provider.Env = append(os.Environ(), "DUBBO_IP_TO_BIND="+pod, "DUBBO_IP_TO_REGISTRY="+pod)
	input, err := provider.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	process := program.Start(t, provider)
	wait.For(t, "the provider answers the Envoy", func() error {
		if !process.Runs() {
			t.Fatalf("the provider has ended:\n%s", process.Last())
		}
		return call()
	})
	shares(t, admin)
	_ = input.Close()
	wait.For(t, "the provider that ends is gone", func() error {
		if err := call(); err == nil || !strings.Contains(err.Error(), "503") {
			return fmt.Errorf("a call: %v", err)
		}
		return nil
	})
	for _, text := range e.Unhappy(t) {
		t.Error(text)
	}
}

// call asks the provider, by the Envoy, for what it hasn't got: that Dubbo itself says so is the
// answer. Calls that it serves are made in test/migration.
func call() error {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/nothing", gatewayPort))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "Invoker not found")) {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return err
}

// shares looks at what the Envoy has of the service: one endpoint at each port, of the weight that
// the provider says.
func shares(t *testing.T, admin string) {
	t.Helper()
	answer, err := http.Get("http://" + admin + "/clusters")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	weights := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, greeter+"::") && strings.Contains(line, "::weight::") {
			weights++
			if strings.TrimSpace(line) != fmt.Sprintf("outbound|%[1]d||%[2]s::%[3]s:%[1]d::weight::300", triplePort, greeter, pod) &&
				strings.TrimSpace(line) != fmt.Sprintf("outbound|%[1]d||%[2]s::%[3]s:%[1]d::weight::300", dubboPort, greeter, pod) {
				t.Errorf("an endpoint: %s", line)
			}
		}
	}
	if weights != 2 {
		t.Errorf("%d endpoints:\n%s", weights, text)
	}
}
