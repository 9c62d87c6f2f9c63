package kinds_test

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

const aRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs:
  - name: edge
  rules:
  - backendRefs:
    - name: web
      port: 80
`

// TestGatewayAPI: objects of the Gateway API are read as the API server reads them, and mistakes
// have their place.
func TestGatewayAPI(t *testing.T) {
	reader := kinds.Reader{Check: validation.New().Check, Gateways: true}
	for change, want := range map[string]string{
		"":                                  "",
		"v1\nkind->v3\nkind":                "a.yaml:1:13: HTTPRoute shop/web: apiVersion: HTTPRoute has no version \"v3\"",
		"port: 80->port: eighty":            "a.yaml:10:13: HTTPRoute shop/web: spec.rules",
		"port: 80->porr: 80":                "HTTPRoute shop/web: spec.rules[0].backendRefs[0].porr: is no field",
		"port: 80->port: 70000":             "a.yaml:10:13: HTTPRoute shop/web: spec.rules[0].backendRefs[0].port",
		"parentRefs:->parentRef:":           "warning: HTTPRoute shop/web: spec.parentRef: is no field",
		"spec:->status: {}\nspecification:": "a.yaml",
	} {
		old, now, _ := strings.Cut(change, "->")
		docs := reader.Read("a.yaml", []byte(strings.Replace(aRoute, old, now, 1)))
		if len(docs) != 1 || docs[0].Table != gatewayapi.HTTPRoute || docs[0].Key() != "shop/web" {
			t.Fatalf("%q: %+v", change, docs)
		}
		var said []string
		for _, f := range docs[0].Faults {
			said = append(said, f.Error())
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%q: %s\nwant %s", change, text, want)
		}
	}
	class := "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: ours}\nspec: {controllerName: example.com/ours}\n"
	if docs := reader.Read("a.yaml", []byte(class)); len(docs) != 1 || docs[0].Row == nil || docs[0].Row.Key != "ours" {
		t.Errorf("%+v", docs)
	}
	if docs := (kinds.Reader{}).Read("a.yaml", []byte(aRoute)); len(docs) != 1 || docs[0].Foreign == "" {
		t.Errorf("who doesn't ask for it: %+v", docs)
	}
}
