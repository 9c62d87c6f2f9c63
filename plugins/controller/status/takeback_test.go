package status

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// TestTakeBack: what is ours goes from all statuses, what is others' stays, and what an istiod was
// the last to write; those of another revision are left alone.
func TestTakeBack(t *testing.T) {
	entry := "{parentRef: {name: edge}, controllerName: istio.io/gateway-controller, conditions: []}"
	var objects []runtime.Object
	for _, text := range []string{
		"{metadata: {name: ours, namespace: shop}, status: {parents: [" + entry + ", {parentRef: {name: x}, controllerName: example.com/other}]}}",
		"{metadata: {name: istiods, namespace: shop, managedFields: [{manager: pilot-discovery, operation: Update, subresource: status, fieldsV1: {'f:status': {'f:parents': {}}}}]}, status: {parents: [" + entry + "]}}",
		"{metadata: {name: canarys, namespace: shop, labels: {istio.io/rev: canary}}, status: {parents: [" + entry + "]}}",
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetAPIVersion(gatewayapi.Group + "/v1")
		u.SetKind("HTTPRoute")
		objects = append(objects, u)
	}
	lists := map[schema.GroupVersionResource]string{}
	for _, table := range gatewayapi.Tables() {
		k, _ := gatewayapi.Lookup(table)
		lists[schema.GroupVersionResource{Group: k.Group(), Version: k.Versions[0], Resource: kinds.Plural(k.Name())}] = k.Name() + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	left, err := FindLeft(t.Context(), client, "", "default")
	if err != nil {
		t.Fatal(err)
	}
	if got := left.Names(); !slices.Equal(got, []string{"HTTPRoute/shop/ours"}) {
		t.Errorf("%q", got)
	}
	if done, err := left.TakeBack(t.Context()); err != nil || len(done) != 1 {
		t.Errorf("%q, %v", done, err)
	}
	u, err := client.Resource(schema.GroupVersionResource{Group: gatewayapi.Group, Version: "v1", Resource: "httproutes"}).Namespace("shop").Get(t.Context(), "ours", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if parents, _, _ := unstructured.NestedSlice(u.Object, "status", "parents"); len(parents) != 1 {
		t.Errorf("%v", parents)
	}
	if left, err = FindLeft(t.Context(), client, "", ""); err != nil || !slices.Equal(left.Names(), []string{"HTTPRoute/shop/canarys"}) {
		t.Errorf("%q, %v", left.Names(), err)
	}
}
