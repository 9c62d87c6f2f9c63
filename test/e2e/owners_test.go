package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	sharedGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: test}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: %d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}]
`
	// answering is a virtual service of a namespace, whose host answers a word.
	answering = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: %[1]s}
spec:
  hosts: [%[1]s.example]
  gateways: [test/gw]
  http: [{directResponse: {status: 200, body: {string: %[2]s}}}]
`
	// spoiling has evil's host answer from a file that isn't there, which nobody but an Envoy can
	// know.
	spoiling = `---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: spoils, namespace: test}
spec:
  configPatches:
  - applyTo: HTTP_ROUTE
    match: {context: GATEWAY, routeConfiguration: {vhost: {name: "evil.example:%d"}}}
    patch: {operation: INSERT_FIRST, value: {match: {path: /x}, direct_response: {status: 200, body: {filename: /there/is/no/such/file}}}}
`
)

// TestOwnersOfWhatEnvoyRefuses: two namespaces share a gateway's route configuration. In one
// revision demo's route changes, and evil's is patched to what an Envoy refuses: demo's edit
// arrives, evil's host stays as it was, and the patch alone is named, not demo's object.
func TestOwnersOfWhatEnvoyRefuses(t *testing.T) {
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			envoy.Binary(t)
			dir, port := t.TempDir(), wait.Port(t)
			write := func(text string) { place(t, filepath.Join(dir, "all.yaml"), fmt.Sprintf(sharedGateway, port)+text) }
			write(fmt.Sprintf(answering, "demo", "one") + fmt.Sprintf(answering, "evil", "old"))
			plane := mesh.Start(t, program, dir)
			plane.Ready(t)
			admin := wait.Address(t)
			e := envoy.Start(t, "edge", admin, plane.Bootstrap(t, "--name", "gateway", "--namespace", "test", "--type", "router", "--ip", "127.0.0.21",
				"--labels", "istio=ingressgateway", "--protocol", protocol, "--admin", admin))
			e.Ready(t)
			at := func(host string) mesh.Target {
				return mesh.Target{Address: local(port), Host: host + ".example", Path: "/"}
			}
			only(t, at("demo"), "one")
			only(t, at("evil"), "old")

			write(fmt.Sprintf(answering, "demo", "two") + fmt.Sprintf(answering, "evil", "old") + fmt.Sprintf(spoiling, port))
			only(t, at("demo"), "two")
			only(t, at("evil"), "old")
			wait.For(t, "the patch is named, and nobody else", func() error {
				out, err := exec.CommandContext(t.Context(), program, "proxies", "--refused", "--addr", plane.HTTP).CombinedOutput()
				if err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				if text := string(out); !strings.Contains(text, "virtual host evil.example:") || !strings.Contains(text, "spoils") {
					return fmt.Errorf("it says %s", text)
				} else if strings.Contains(text, "demo/v") || strings.Contains(text, "evil/v") {
					t.Fatalf("others are named:\n%s", text)
				}
				return nil
			})

			write(fmt.Sprintf(answering, "demo", "three") + fmt.Sprintf(answering, "evil", "new"))
			only(t, at("demo"), "three")
			only(t, at("evil"), "new")
		})
	}
}
