package analysis

import (
	"slices"
	"testing"
)

// TestConnectedProxies: what a connected proxy's labels match selects something, in its namespace
// or everywhere; a proxy of which no namespace is known is no workload.
func TestConnectedProxies(t *testing.T) {
	const policies = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: other, namespace: shop}
spec:
  hosts: [other.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.1, labels: {app: other, istio: egressgateway}}]
---
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: t, namespace: shop}
spec: {selector: {matchLabels: {app: web}}}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: r, namespace: shop}
spec: {selector: {matchLabels: {app: web}}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: g, namespace: edge}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {hosts: [a.example], port: {number: 80, name: http, protocol: HTTP}, tls: {httpsRedirect: true}}
`
	web := Proxy{Name: "sidecar~10.0.0.9~web.shop~shop.svc.cluster.local", Namespace: "shop", Labels: map[string]string{"app": "web"}}
	edge := Proxy{Name: "router~10.0.0.8~edge.edge~edge.svc.cluster.local", Namespace: "edge", Labels: map[string]string{"istio": "ingressgateway"}}
	elsewhere, nowhere := web, web
	elsewhere.Namespace, nowhere.Namespace = "bank", ""
	unmatched := []string{"Gateway g", "RequestAuthentication r", "Telemetry t"}
	for _, c := range []struct {
		name    string
		proxies []Proxy
		want    []string
	}{
		{"none are known", nil, unmatched},
		{"a sidecar", []Proxy{web}, unmatched[:1]},
		{"a gateway", []Proxy{edge}, unmatched[1:]},
		{"both", []Proxy{edge, web}, nil},
		{"a sidecar of another namespace", []Proxy{elsewhere}, unmatched},
		{"one of no namespace", []Proxy{nowhere}, unmatched},
	} {
		var r Reader
		r.Add("a.yaml", []byte(policies))
		r.Input.Proxies = c.proxies
		var got []string
		for _, f := range r.All() {
			if f.Code == noWorkloads || f.Code == notFound {
				got = append(got, f.Kind+" "+f.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q select nothing, want %q", c.name, got, c.want)
		}
	}
}

// TestProxyOfAnEndpoint: a proxy and the endpoint of its address and labels are one workload.
func TestProxyOfAnEndpoint(t *testing.T) {
	labels := map[string]string{"app": "web"}
	w := newWorld(Input{
		Workloads: []Workload{{Namespace: "shop", Labels: labels, Name: "10.0.0.9"}},
		Proxies: []Proxy{
			{Name: "sidecar~10.0.0.9~web.shop~shop.svc.cluster.local", Namespace: "shop", Labels: labels},
			{Name: "sidecar~10.0.0.7~web-2.shop~shop.svc.cluster.local", Namespace: "shop", Labels: labels},
		},
	})
	if got := w.matching("shop", labels); len(got) != 2 {
		t.Errorf("%d workloads are selected, not 2: %v", len(got), got)
	}
}
