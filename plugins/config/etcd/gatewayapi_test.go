package etcd

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// ofGateways are objects of the Gateway API and an Ingress, by their keys; those of classes have no
// namespace in them.
var ofGateways = map[string]string{
	"gateway.networking.k8s.io/GatewayClass/mine": "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, " +
		"metadata: {name: mine}, spec: {controllerName: istio.io/gateway-controller}}",
	"gateway.networking.k8s.io/HTTPRoute/shop/web": "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: shop}, " +
		"spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: web, port: 80}]}]}}",
	"gateway.networking.k8s.io/ReferenceGrant/shop/web": "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: " +
		"ReferenceGrant, metadata: {name: web, namespace: shop}, " +
		"spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], to: [{group: '', kind: Service}]}}",
	"networking.k8s.io/Ingress/shop/web": "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, " +
		"namespace: shop}, spec: {ingressClassName: mesh, defaultBackend: {service: {name: web, port: {number: 80}}}}}",
	"networking.k8s.io/IngressClass/mesh": "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: " +
		"mesh}, spec: {controller: istio.io/ingress-controller}}",
}

// TestGateways: kinds of the Gateway API and Ingresses are rows as Istio's are, and go with their
// keys. A key of a class that has a namespace, and one of a route that has none, are told.
func TestGateways(t *testing.T) {
	p, out := newTest(t, "")
	whole := etcd.Batch{Whole: true}
	for key, text := range ofGateways {
		whole.Put = append(whole.Put, etcd.Pair{Key: key, Value: []byte(text), Created: 7})
	}
	must(t, p, whole)
	rows := map[string]string{
		gatewayapi.GatewayClass: "mine", gatewayapi.HTTPRoute: "shop/web", secrets.Grants: "shop/web",
		ingress.Ingress: "shop/web", ingress.Class: "mesh",
	}
	for table, key := range rows {
		if row := out.rows[table][key]; row == nil || row.Created != 7 || !strings.HasPrefix(row.Source, "etcd:/c/"+table) {
			t.Errorf("%s %s is %v", table, key, row)
		}
	}
	if wrong := out.faults(t); len(wrong) > 0 {
		t.Error(wrong)
	}
	if text := string(out.rows[gatewayapi.HTTPRoute]["shop/web"].Payload); !strings.Contains(text, `"kind":"Gateway"`) {
		t.Errorf("%s lacks the API server's defaults", text)
	}
	for key, text := range ofGateways {
		group, rest, _ := strings.Cut(key, "/")
		kind, name, _ := strings.Cut(rest, "/")
		other := group + "/" + kind + "/shop/mine"
		if strings.Contains(name, "/") {
			other = group + "/" + kind + "/web"
		}
		must(t, p, etcd.Batch{Put: []etcd.Pair{{Key: other, Value: []byte(text)}}})
		if wrong := out.faults(t); len(wrong) != 1 || !strings.Contains(wrong[0], "the key is no GROUP/KIND/NAMESPACE/NAME") {
			t.Errorf("%s: %v", other, wrong)
		}
		must(t, p, etcd.Batch{Gone: []string{other, key}})
	}
	for table, key := range rows {
		if out.rows[table][key] != nil {
			t.Errorf("%s %s stays", table, key)
		}
	}
}

// TestNames: an object of a class is named without a namespace, all others with one, and what names
// an object is what its key says.
func TestNames(t *testing.T) {
	for key := range ofGateways {
		i, ok := idOf(key)
		if !ok || i.key() != key || named(i) != nil || !served(i.table) {
			t.Errorf("%s is %+v: %v", key, i, named(i))
		}
		if i.namespace = strings.Repeat("x", 1-min(1, len(i.namespace))); named(i) == nil {
			t.Errorf("%s may be named %+v", key, i)
		}
	}
	o, i, err := given(gatewayapi.GatewayClass, []byte(`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "a"}}`))
	if err != nil || i.key() != gatewayapi.GatewayClass+"/a" {
		t.Error(i, err)
	}
	text, err := o.text(0)
	if was, failed := stored(i, text, 3); err != nil || failed != nil || was.meta()["namespace"] != nil || was.version() != "3" {
		t.Error(was, err, failed)
	}
	if _, _, err := given(gatewayapi.Gateway,
		[]byte(`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "a"}}`)); err == nil {
		t.Error("a Gateway without a namespace is taken")
	}
}
