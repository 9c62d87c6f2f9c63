package reliability

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// set is plugins.yaml: one of each kind that traffic or clients depend on. The registry and the
// patch are the first to be misused.
const set = `# What runs.
plugins:
- name: files
  kind: config
  builtin: config/file
  config: {dir: %s}
- name: mesh
  kind: config
  builtin: config/mesh
- name: serviceentry
  kind: registry
  builtin: registry/serviceentry
- name: reg
  kind: registry
%s- name: istio
  kind: generator
  builtin: generator/istio
- name: header
  kind: patch
  types: [CDS]
  process: {command: %s, args: [patch]}
  insecure: true
`

const certificates = `- name: certificates
  kind: authenticator
  builtin: authenticator/certificate
`

const fixed = `  builtin: registry/memory
  config: {services: [{host: reg.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 127.0.0.1, port: %d}]}]}
`

const gatewayConfig = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: test}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: %d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: [web.example, reg.example]}
`

const routesConfig = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  gateways: [gateway]
  http: [{route: [{destination: {host: web.example}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reg, namespace: test}
spec:
  hosts: [reg.example]
  gateways: [gateway]
  http: [{route: [{destination: {host: reg.example}}]}]
`

// apiGateway and apiRoute are the same in the Gateway API.
const apiGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gateway, namespace: test}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: %d, protocol: HTTP}]
`

const apiRoute = `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %[1]s, namespace: test}
spec:
  parentRefs: [{name: gateway}]
  hostnames: [%[1]s.example]
  rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: %[1]s.example, port: 80}]}]
`

const webConfig = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1, ports: {http: %d}}]
`

// crowdConfig is one of many services that nobody calls.
const crowdConfig = `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: crowd-%[1]d, namespace: test}
spec:
  hosts: [crowd-%[1]d.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.1.0.1}, {address: 127.1.0.2}]
`

// crowd is how many there are.
const crowd = 200

const probeConfig = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: probe, namespace: test}
spec:
  hosts: [` + probed + `]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: probe, namespace: test}
spec:
  host: ` + probed + `
  trafficPolicy: {connectionPool: {tcp: {maxConnections: %d}}}
`

// configure writes all that the control plane reads.
func (w *world) configure() {
	w.t.Helper()
	w.place("gateway.yaml", fmt.Sprintf(gatewayConfig, w.port))
	w.place("routes.yaml", routesConfig)
	w.place("web.yaml", fmt.Sprintf(webConfig, w.backends[0].Port))
	var all strings.Builder
	for i := range crowd {
		fmt.Fprintf(&all, crowdConfig, i)
	}
	w.place("crowd.yaml", all.String())
	w.place("probe.yaml", fmt.Sprintf(probeConfig, 1))
	w.edited = 1
	w.declare(w.plugins())
}

// plugins is what plugins.yaml says.
func (w *world) plugins() string {
	var more string
	w.reg = fmt.Sprintf(fixed, w.backends[1].Port)
	if w.trial.set != nil {
		more = w.trial.set(w)
	}
	text := fmt.Sprintf(set, w.dir, w.reg, rogue)
	if w.trial.limits != "" {
		text = strings.ReplaceAll(text, "\n- name:", "\n  limits: "+w.trial.limits+"\n- name:") + "  limits: " + w.trial.limits + "\n"
		text = strings.Replace(text, "  limits: "+w.trial.limits+"\n", "", 1) // before the first
	}
	if w.trial.secure {
		text += certificates
	}
	return text + more
}

// declare replaces plugins.yaml in one step.
func (w *world) declare(text string) {
	w.t.Helper()
	w.replace(w.file, text)
}

// place replaces a file of the configuration in one step.
func (w *world) place(name, text string) {
	w.t.Helper()
	w.replace(filepath.Join(w.dir, name), text)
}

func (w *world) replace(file, text string) {
	w.t.Helper()
	beside := filepath.Join(filepath.Dir(file), ".beside")
	err := os.WriteFile(beside, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(beside, file)
	}
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
}
