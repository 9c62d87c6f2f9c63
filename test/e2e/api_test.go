package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	mcp "istio.io/api/mcp/v1alpha1"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	apiSet = `
plugins:
- {name: files, kind: config, builtin: config/file, onLoss: apply, config: {dir: config}}
- {name: mesh, kind: config, builtin: config/mesh, config: {meshConfig: mesh.yaml}}
- {name: memory, kind: registry, builtin: registry/memory, config: {services: [{host: web.shop.svc.cluster.local, name: web, namespace: shop, ports: [{number: 80, protocol: HTTP}]}]}}
- {name: serviceentry, kind: registry, builtin: registry/serviceentry}
- {name: operators, kind: authenticator, builtin: authenticator/token, config: {file: operators.yaml}}
- {name: workloads, kind: authenticator, builtin: authenticator/token, config: {file: workloads.yaml}}
- {name: istio, kind: generator, builtin: generator/istio}
- {name: api, kind: generator, builtin: generator/api, select: {generator: api}, start: onDemand}
`
	apiObjects = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop, labels: {team: a}}
spec: {hosts: [reviews], http: [{route: [{destination: {host: reviews}}]}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: shop}
spec: {hosts: [outside.example], resolution: DNS, ports: [{number: 443, name: tls, protocol: TLS}]}
`
	routesType, entriesType = "networking.istio.io/v1/VirtualService", "networking.istio.io/v1alpha3/ServiceEntry"
)

// reader is another control plane that reads the configuration, as Istio's does whose configSources
// names an xDS server: one stream, all types.
// https://istio.io/latest/docs/reference/config/istio.mesh.v1alpha1/#ConfigSource
type reader struct {
	stream
	node *corev3.Node
	seen map[string]*discovery.DiscoveryResponse
}

func (g *guarded) read(token, generator string) *reader {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), wait.Deadline)
	g.t.Cleanup(cancel)
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	s, err := discovery.NewAggregatedDiscoveryServiceClient(g.conn).StreamAggregatedResources(ctx)
	if err != nil {
		g.t.Fatal(err)
	}
	meta, err := structpb.NewStruct(map[string]any{"GENERATOR": generator})
	if err != nil {
		g.t.Fatal(err)
	}
	return &reader{s, &corev3.Node{Id: "a control plane", Metadata: meta}, map[string]*discovery.DiscoveryResponse{}}
}

// ask subscribes to a type.
func (r *reader) ask(typeURL string, names ...string) error {
	return r.Send(&discovery.DiscoveryRequest{Node: r.node, TypeUrl: typeURL, ResourceNames: names})
}

// next takes responses, and acknowledges them, until there is one of a type.
func (r *reader) next(typeURL string) (*discovery.DiscoveryResponse, error) {
	for {
		m, err := r.Recv()
		if err != nil {
			return nil, err
		}
		if err := r.Send(&discovery.DiscoveryRequest{TypeUrl: m.TypeUrl, VersionInfo: m.VersionInfo, ResponseNonce: m.Nonce}); err != nil {
			return nil, err
		}
		if m.TypeUrl == typeURL {
			return m, nil
		}
	}
}

// resources are the objects of a response by name.
func resources(t *testing.T, m *discovery.DiscoveryResponse) map[string]*mcp.Resource {
	t.Helper()
	found := map[string]*mcp.Resource{}
	for _, a := range m.Resources {
		r := &mcp.Resource{}
		if err := a.UnmarshalTo(r); err != nil {
			t.Fatal(err)
		}
		found[r.Metadata.Name] = r
	}
	return found
}

// Other control planes read config kinds, the mesh's settings, and services as ServiceEntries; what
// changes comes by itself.
func TestAPI(t *testing.T) {
	g := guardAPI(t)
	r := g.read(operatorToken, "api")
	for _, typeURL := range []string{routesType, entriesType, "core/v1alpha1/MeshConfig", "security.istio.io/v1/PeerAuthentication"} {
		if err := r.ask(typeURL); err != nil {
			t.Fatal(err)
		}
		m, err := r.next(typeURL)
		if err != nil {
			t.Fatalf("%s: %v", typeURL, err)
		}
		r.seen[typeURL] = m
	}
	route, spec := resources(t, r.seen[routesType])["shop/reviews"], &networking.VirtualService{}
	if err := route.GetBody().UnmarshalTo(spec); err != nil || spec.Hosts[0] != "reviews" || route.Metadata.Labels["team"] != "a" {
		t.Errorf("%v: %v", err, route)
	}
	names := slices.Sorted(maps.Keys(resources(t, r.seen[entriesType])))
	if !slices.Equal(names, []string{"shop/outside", "shop/synthetic-web"}) {
		t.Errorf("ServiceEntries %v", names)
	}
	settings := &meshv1.MeshConfig{}
	if all := r.seen["core/v1alpha1/MeshConfig"].Resources; len(all) != 1 || all[0].UnmarshalTo(settings) != nil || settings.RootNamespace != "ops" {
		t.Errorf("MeshConfig: %v", all)
	}
	if all := r.seen["security.istio.io/v1/PeerAuthentication"].Resources; len(all) != 0 {
		t.Errorf("what there is none of: %v", all)
	}

	g.write("config/all.yaml", apiObjects+`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ratings, namespace: shop}
spec: {hosts: [ratings], http: [{route: [{destination: {host: ratings}}]}]}
`)
	if m, err := r.next(routesType); err != nil || len(resources(t, m)) != 2 {
		t.Errorf("%v: %v", err, m)
	}
	_, others, _ := strings.Cut(apiObjects, "---\n")
	g.write("config/all.yaml", others)
	if m, err := r.next(routesType); err != nil || len(m.Resources) != 0 {
		t.Errorf("%v: %v", err, m)
	}
}

// Nobody reads it who isn't of the root namespace, and proxies don't get it by asking.
func TestAPIRefuses(t *testing.T) {
	g := guardAPI(t)
	r := g.read(webToken, "api")
	if err := r.ask(routesType); err != nil {
		t.Fatal(err)
	}
	if m, err := r.next(routesType); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "root namespace, ops") {
		t.Errorf("a workload: %v, %v", err, m)
	}
	r = g.read(operatorToken, "")
	r.node.Id = "sidecar~10.0.0.1~a.ops~ops.svc.cluster.local"
	for _, typeURL := range []string{routesType, clusters} {
		if err := r.ask(typeURL); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := r.next(clusters); err != nil || m.TypeUrl != clusters {
		t.Errorf("an unknown type ends the stream or is answered: %v, %v", m, err)
	}
	if p := g.Plugins(t)["api"]; p.State != "serving" {
		t.Error(fmt.Sprint("after a client it is ", p.State))
	}
}

func guardAPI(t *testing.T) *guarded {
	t.Helper()
	return guardWith(t, apiSet, map[string]string{"config/all.yaml": apiObjects, "mesh.yaml": "rootNamespace: ops"}, "--authPlaintext")
}
