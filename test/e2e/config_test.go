package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// configuration is what the tests change: a service in two versions behind a gateway, and later a
// second service.
type configuration struct {
	dir string

	// WebPort and ShopPort are the services' ports, where the client's sidecar listens too;
	// GatewayPort is the gateway's.
	WebPort, ShopPort, GatewayPort int
	V1, V2, Shop                   []*mesh.Backend
	// Weight1 and Weight2 of the two versions.
	Weight1, Weight2 int
	// Old: there is a route for /old.
	Old bool
}

const gatewayYAML = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: test}
spec:
  selector: {istio: ingressgateway}
  servers:
  - port: {number: {{.GatewayPort}}, name: http, protocol: HTTP}
    bind: 127.0.0.1
    hosts: ["web.example", "shop.example"]
`

const webYAML = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: {{.WebPort}}, name: http, protocol: HTTP}]
  endpoints:
{{- range .V1}}
  - {address: 127.0.0.1, ports: {http: {{.Port}}}, labels: {version: v1}}
{{- end}}
{{- range .V2}}
  - {address: 127.0.0.1, ports: {http: {{.Port}}}, labels: {version: v2}}
{{- end}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: test}
spec:
  host: web.example
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
`

const routesYAML = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  gateways: [gateway, mesh]
  http:
  - match: [{uri: {prefix: /api}}]
    route:
    - destination: {host: web.example, subset: v1}
      weight: {{.Weight1}}
    - destination: {host: web.example, subset: v2}
      weight: {{.Weight2}}
{{- if .Old}}
  - match: [{uri: {prefix: /old}}]
    route:
    - destination: {host: web.example, subset: v1}
{{- end}}
`

const shopYAML = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop, namespace: test}
spec:
  hosts: [shop.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: {{.ShopPort}}, name: http, protocol: HTTP}]
  endpoints:
{{- range .Shop}}
  - {address: 127.0.0.1, ports: {http: {{.Port}}}}
{{- end}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: test}
spec:
  hosts: [shop.example]
  gateways: [gateway]
  http:
  - route:
    - destination: {host: shop.example}
`

// write writes the files that name what changed; each takes the place of the old one at once.
func (c *configuration) write(t *testing.T, files ...string) {
	t.Helper()
	texts := map[string]string{"gateway.yaml": gatewayYAML, "web.yaml": webYAML, "routes.yaml": routesYAML, "shop.yaml": shopYAML}
	for _, name := range files {
		var b strings.Builder
		if err := template.Must(template.New(name).Parse(texts[name])).Execute(&b, c); err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(c.dir, name), b.String())
	}
}

// place writes a file beside and renames it.
func place(t *testing.T, path, text string) {
	t.Helper()
	beside := filepath.Join(t.TempDir(), "new")
	if err := os.WriteFile(beside, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}
