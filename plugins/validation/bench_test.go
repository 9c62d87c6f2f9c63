package validation

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

const route = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: shop
  namespace: shop
spec:
  hosts: [shop.example.com, shop]
  gateways: [edge/public, mesh]
  http:
  - name: api
    match:
    - uri: {prefix: /api}
      headers:
        x-user: {exact: test}
    route:
    - destination: {host: api.shop.svc.cluster.local, subset: v1, port: {number: 80}}
      weight: 90
    - destination: {host: api.shop.svc.cluster.local, subset: v2, port: {number: 80}}
      weight: 10
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: "5xx"}
  - route:
    - destination: {host: web.shop.svc.cluster.local}
`

func BenchmarkRead(b *testing.B) {
	for name, reader := range map[string]kinds.Reader{"unchecked": {}, "checked": {Check: New().Check}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, d := range reader.Read("a.yaml", []byte(route)) {
					if d.Row == nil {
						b.Fatal(d.Faults)
					}
				}
			}
		})
	}
}
