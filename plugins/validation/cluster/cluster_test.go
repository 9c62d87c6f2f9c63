package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clients "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
)

// TestRead: objects of all kinds are read, and analyzed together; a kind that may not be listed is
// named, one without a definition is not; another error ends it.
func TestRead(t *testing.T) {
	lists := map[schema.GroupVersionResource]string{}
	for _, k := range all("istio-system") {
		for _, version := range k.versions {
			lists[schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource}] = "List"
		}
	}
	var objects []runtime.Object
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: 'rootNamespace: root'}}",
		"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: edge, namespace: shop}, spec: {}, status: {parents: [{conditions: [{type: Accepted, status: 'False', reason: Invalid}]}]}}",
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	refuse := map[string]error{
		"pods":        apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")),
		"telemetries": apierrors.NewNotFound(schema.GroupResource{Resource: "telemetries"}, ""),
	}
	client.PrependReactor("list", "*", func(a clients.Action) (bool, runtime.Object, error) {
		err := refuse[a.GetResource().Resource]
		return err != nil, nil, err
	})
	r := &analysis.Reader{}
	forbidden, err := Read(t.Context(), client, "istio-system", r)
	if err != nil || !slices.Equal(forbidden, []string{"pods"}) {
		t.Fatalf("%v; %v may not be listed", err, forbidden)
	}
	if r.Input.Mesh.GetRootNamespace() != "root" {
		t.Errorf("the mesh's settings are %v", r.Input.Mesh)
	}
	var told []string
	for _, f := range r.All() {
		told = append(told, f.Code+" "+f.Kind+" "+f.Name)
	}
	for _, want := range []string{"IST0102 Namespace shop", "IST0101 VirtualService web", "IST0171 HTTPRoute edge"} {
		if !slices.Contains(told, want) {
			t.Errorf("%s is not in %s", want, strings.Join(told, ", "))
		}
	}
	remote := &unstructured.Unstructured{}
	text := "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 81}]}}"
	if err := yaml.Unmarshal([]byte(text), &remote.Object); err != nil {
		t.Fatal(err)
	}
	here := remote.DeepCopy()
	if err := unstructured.SetNestedSlice(here.Object, []any{map[string]any{"port": int64(80)}}, "spec", "ports"); err != nil {
		t.Fatal(err)
	}
	r = &analysis.Reader{}
	local := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, here)
	if _, err := Read(t.Context(), local, "istio-system", r); err != nil {
		t.Fatal(err)
	}
	if err := ReadRemote(t.Context(), fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, remote), "east", r); err != nil {
		t.Fatal(err)
	}
	var otherwise []string
	for _, f := range r.All() {
		if f.Code == "IST0170" {
			otherwise = append(otherwise, f.Namespace+"/"+f.Name+" "+f.Message)
		}
	}
	const differs = "in east this service is otherwise than in this cluster: its ports"
	if len(otherwise) != 1 || otherwise[0] != "shop/web "+differs {
		t.Errorf("of a service of two clusters is told %q", otherwise)
	}
	refuse["services"] = errors.New("the line is cut")
	if _, err := Read(t.Context(), client, "istio-system", &analysis.Reader{}); err == nil || !strings.Contains(err.Error(), "services: the line is cut") {
		t.Errorf("where the line is cut it says %v", err)
	}
}
