package file

import (
	"testing"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestDefaults: a route of a file has what an API server would add to it.
func TestDefaults(t *testing.T) {
	b := newBench(t, map[string]string{"edge.yaml": `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  rules:
  - filters: [{type: RequestRedirect, requestRedirect: {hostname: other.example}}]
  - backendRefs: [{name: web, port: 80}]
`})
	b.WaitRows(gatewayapi.HTTPRoute, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 })
	o, err := gatewayapi.Decode[gateway.HTTPRouteSpec](b.Rows(gatewayapi.HTTPRoute)["shop/web"])
	if err != nil {
		t.Fatal(err)
	}
	first, second := o.Spec.Rules[0], o.Spec.Rules[1]
	if code := first.Filters[0].RequestRedirect.StatusCode; code == nil || *code != 302 {
		t.Errorf("the redirect's status is %v", code)
	}
	if len(first.Matches) != 1 || *first.Matches[0].Path.Value != "/" {
		t.Errorf("the rule asks for %v", first.Matches)
	}
	if to := second.BackendRefs[0]; to.Weight == nil || *to.Weight != 1 || to.Kind == nil || *to.Kind != "Service" {
		t.Errorf("it goes to %v", to)
	}
}
