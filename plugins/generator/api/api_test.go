package api_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	mcp "istio.io/api/mcp/v1alpha1"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/api"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	entries  = "networking.istio.io/v1/ServiceEntry"
	meshType = "core/v1alpha1/MeshConfig"
)

// TestReadme serves the README's object as it says.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	h := plugintest.Start(t, api.Plugin(), config)
	doc := kinds.Read("routes.yaml", []byte(blocks[1].Text))[0]
	h.Update(doc.Table, []*sdk.Row{doc.Row})
	const typeURL = "networking.istio.io/v1/VirtualService"
	p := &sdk.Proxy{Types: []string{typeURL}}
	h.Attach(p)
	name := strings.TrimSpace(blocks[2].Text)
	m, spec := decode(t, h.Resources(p.Connection, typeURL)[name]), &networking.VirtualService{}
	if err := m.Body.UnmarshalTo(spec); err != nil || m.Metadata.Name != name || len(spec.Hosts) != 1 ||
		spec.Hosts[0] != "reviews" || m.Metadata.Version == "" {
		t.Errorf("%v: %v", err, m)
	}
}

func decode(t *testing.T, body []byte) *mcp.Resource {
	t.Helper()
	m := &mcp.Resource{}
	if err := proto.Unmarshal(body, m); err != nil || len(body) == 0 {
		t.Fatalf("%q: %v", body, err)
	}
	return m
}

// Services that come from no ServiceEntry are among the ServiceEntries; those that come from one
// are not there twice.
func TestServices(t *testing.T) {
	h := plugintest.Start(t, api.Plugin(), []byte(`{"authentication":false}`))
	h.Update("services", []*sdk.Row{
		sdk.ServiceRow(&sdk.Service{
			Host: "web.shop.svc.cluster.local", Namespace: "shop", Name: "web", Addresses: []string{"10.0.0.1"}, Labels: map[string]string{"team": "a"},
			Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP", Target: 8080}}, ExportTo: []string{"."}, Selector: map[string]string{"app": "web"},
		}),
		sdk.ServiceRow(&sdk.Service{Host: "web.example", Namespace: "shop", Name: "web", External: true, Resolution: pb.ServiceResolutionDns}),
		sdk.ServiceRow(&sdk.Service{Host: "entry.example", Namespace: "shop", OriginTable: kinds.ServiceEntry, OriginKey: "shop/entry"}),
	})
	p := &sdk.Proxy{Types: []string{entries}}
	h.Attach(p)
	all := h.Resources(p.Connection, entries)
	if len(all) != 2 {
		t.Fatalf("%d resources: %v", len(all), all)
	}
	byHost := map[string]*networking.ServiceEntry{}
	for _, body := range all {
		spec, m := &networking.ServiceEntry{}, decode(t, body)
		if err := m.Body.UnmarshalTo(spec); err != nil || !strings.HasPrefix(m.Metadata.Name, "shop/synthetic-web") {
			t.Fatal(err, m)
		}
		byHost[spec.Hosts[0]] = spec
	}
	want := &networking.ServiceEntry{
		Hosts: []string{"web.shop.svc.cluster.local"}, Addresses: []string{"10.0.0.1"}, Location: networking.ServiceEntry_MESH_INTERNAL,
		Resolution: networking.ServiceEntry_STATIC, ExportTo: []string{"."},
		Ports:            []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}},
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}},
	}
	if got := byHost[want.Hosts[0]]; !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := byHost["web.example"]; got.GetResolution() != networking.ServiceEntry_DNS || got.Location != networking.ServiceEntry_MESH_EXTERNAL {
		t.Errorf("%v", got)
	}
}

// Kinds of the Gateway API and Ingresses are served, too, as structures; classes have no namespace
// in their names.
func TestGateways(t *testing.T) {
	h := plugintest.Start(t, api.Plugin(), []byte(`{"authentication":false}`))
	const text = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mine}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop, labels: {a: b}}
spec: {ingressClassName: mesh}
`
	for _, doc := range (kinds.Reader{Gateways: true}).Read("edge.yaml", []byte(text)) {
		h.Update(doc.Table, []*sdk.Row{doc.Row})
	}
	for typeURL, want := range map[string][3]string{
		"gateway.networking.k8s.io/v1/GatewayClass": {"/mine", "controllerName", "istio.io/gateway-controller"},
		"networking.k8s.io/v1/Ingress":              {"shop/web", "ingressClassName", "mesh"},
	} {
		p := &sdk.Proxy{Types: []string{typeURL}}
		h.Attach(p)
		m, spec := decode(t, h.Resources(p.Connection, typeURL)[want[0]]), &structpb.Struct{}
		if err := m.Body.UnmarshalTo(spec); err != nil || m.Metadata.Name != want[0] || spec.Fields[want[1]].GetStringValue() != want[2] {
			t.Errorf("%s: %v: %v", typeURL, err, m)
		}
	}
}

// Only callers of the root namespace are served, which the mesh's settings name.
func TestWhoMayAsk(t *testing.T) {
	for _, c := range []struct {
		name, root string
		identities []string
		want       string
	}{
		{"nobody", "", nil, "authenticated"},
		{"another namespace", "", []string{"spiffe://cluster.local/ns/shop/sa/istiod"}, "istio-system"},
		{"no such identity", "", []string{"istio-system", "spiffe://x/istio-system"}, "istio-system"},
		{"the root namespace", "", []string{"spiffe://other.example/ns/istio-system/sa/a"}, ""},
		{"one of several", "", []string{"spiffe://a/ns/shop/sa/a", "spiffe://a/ns/istio-system/sa/a"}, ""},
		{"it is another one", "ops", []string{"spiffe://a/ns/istio-system/sa/a"}, "root namespace, ops"},
		{"and its caller", "ops", []string{"spiffe://a/ns/ops/sa/a"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plugintest.Start(t, api.Plugin(), nil)
			settings, err := kinds.Encode(&meshv1.MeshConfig{RootNamespace: c.root, TrustDomain: "x"})
			if err != nil {
				t.Fatal(err)
			}
			h.Update("mesh", []*sdk.Row{{Key: "mesh", Payload: settings}})
			p := &sdk.Proxy{Types: []string{meshType}, Identities: c.identities}
			if c.want != "" {
				if why := h.AttachRefused(p); !strings.Contains(why, c.want) {
					t.Errorf("refused: %s", why)
				}
				return
			}
			h.Attach(p)
			var m meshv1.MeshConfig
			if err := proto.Unmarshal(h.Resources(p.Connection, meshType)["mesh"], &m); err != nil || m.TrustDomain != "x" {
				t.Error(err, &m)
			}
		})
	}
}
