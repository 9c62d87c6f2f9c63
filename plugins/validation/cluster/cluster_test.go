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

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
)

// TestRead: objects of all kinds are read, and analyzed together; a kind that may not be listed is
// named, one without a definition is not; another error ends it.
func TestRead(t *testing.T) {
	client := serving(t,
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: 'rootNamespace: root'}}",
		"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: edge, namespace: shop}, spec: {}, status: {parents: [{conditions: [{type: Accepted, status: 'False', reason: Invalid}]}]}}",
	)
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
	local := servingObjects(here)
	if _, err := Read(t.Context(), local, "istio-system", r); err != nil {
		t.Fatal(err)
	}
	if err := ReadRemote(t.Context(), servingObjects(remote), "east", r); err != nil {
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

const gatewayAPI = "{apiVersion: gateway.networking.k8s.io/v1, "

// TestStatuses: what statuses of the Gateway API say is told as of files, of all that they depend
// on; where one of that may not be listed nothing is said of them.
func TestStatuses(t *testing.T) {
	gateway := gatewayAPI + "kind: Gateway, metadata: {name: web, namespace: edge}, spec: {gatewayClassName: istio, " +
		"listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}}"
	route := gatewayAPI + "kind: HTTPRoute, metadata: {name: cart, namespace: edge}, " +
		"spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: cart, namespace: shop, port: 80}]}]}}"
	service := "{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}"
	grant := gatewayAPI + "kind: ReferenceGrant, metadata: {name: edge, namespace: shop}, " +
		"spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], to: [{group: '', kind: Service}]}}"
	for name, c := range map[string]struct {
		objects   []string
		forbidden string
		told      bool
	}{
		"all is there":               {[]string{gateway, route, service, grant}, "", false},
		"no grant":                   {[]string{gateway, route, service}, "", true},
		"no service":                 {[]string{gateway, route, grant}, "", true},
		"grants may not be listed":   {[]string{gateway, route, service}, "referencegrants", false},
		"services may not be listed": {[]string{gateway, route, grant}, "services", false},
		"pods may not be listed":     {[]string{gateway, route, grant}, "pods", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := serving(t, c.objects...)
			client.PrependReactor("list", "*", func(a clients.Action) (bool, runtime.Object, error) {
				if a.GetResource().Resource != c.forbidden {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: c.forbidden}, "", errors.New("no"))
			})
			r := &analysis.Reader{}
			if _, err := Read(t.Context(), client, "istio-system", r); err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(r.All(), func(f report.Fault) bool { return f.Code == analysis.StatusProblem && f.Kind == "HTTPRoute" })
			if told != c.told {
				t.Errorf("it is told %v: %v", told, r.All())
			}
		})
	}
}

// serving returns a client of an API server that has objects.
func serving(t *testing.T, texts ...string) *fake.FakeDynamicClient {
	t.Helper()
	client := servingObjects()
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		at := u.GroupVersionKind().GroupVersion().WithResource(kinds.Plural(u.GetKind())) // the client itself would look for gatewaies
		if err := client.Tracker().Create(at, u, u.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	return client
}

func servingObjects(objects ...runtime.Object) *fake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{}
	for _, k := range all("istio-system") {
		for _, version := range k.versions {
			lists[schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource}] = "List"
		}
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
}
