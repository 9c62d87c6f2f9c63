package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// liveMesh answers as a control plane does that has two routes and a service.
func liveMesh(t *testing.T, plugins ...string) string {
	t.Helper()
	route := func(key, host string) admin.Row {
		payload, err := proto.Marshal(&networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		row := admin.Row{Payload: payload}
		row.Key, row.Source = key, "routes.yaml:3:1"
		return row
	}
	mux := http.NewServeMux()
	show := func(path string, v any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	show("/debug/tables", []admin.Table{{Name: "networking.istio.io/VirtualService"}, {Name: "v1/Secret"}, {Name: "services"}})
	running := []admin.Plugin{}
	for _, p := range plugins {
		running = append(running, admin.Plugin{Plugin: p})
	}
	show("/debug/plugins", running)
	secret := admin.Object{Kind: "Secret", Group: "v1", Served: true}
	secret.Key = "edge/web"
	bad := admin.Object{Kind: "VirtualService", Group: "networking.istio.io", State: "ok", Served: true}
	bad.Key, bad.Source, bad.Plugin = "shop/bad", "routes.yaml:3:1", "files"
	show("/debug/configs", []admin.Object{secret, bad})
	show("/debug/effects", admin.Effects{Proxies: 1})
	show("/debug/rowz", []admin.Row{route("shop/good", "reviews"), route("shop/bad", "review")})
	show("/debug/services", []map[string]any{{"service": &pb.Service{Host: "reviews.shop.svc.cluster.local", Namespace: "shop"}}, {"fault": "broken"}})
	show("/debug/endpoints", map[string]any{})
	show("/debug/ledger", []admin.ProxyStatus{})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestDeadEnds: what leads to nothing stands beside the object.
func TestDeadEnds(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(context.Background(), []string{"config", "--addr", liveMesh(t)}, nil, nil, &out, &errOut)
	for _, want := range []string{
		"none; 1 dead end", `routes.yaml:3:1: VirtualService shop/bad: spec.http[0].route[0].destination.host: Referenced host not found: "review" (IST0101)`,
	} {
		if code != 0 || !strings.Contains(out.String(), want) || errOut.Len() > 0 {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, out.String(), errOut.String())
		}
	}
}

func TestAnalyzeLive(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(context.Background(), []string{"analyze", "--live", "--addr", liveMesh(t)}, nil, nil, &out, &errOut)
	const want = `routes.yaml:3:1: VirtualService shop/bad: spec.http[0].route[0].destination.host: Referenced host not found: "review"`
	if code != 1 || !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errOut.String())
	}
}

// TestLiveProxies: connected proxies have the namespaces and labels that select them, as the nodes
// say them; clients that are no proxies of Istio's have none.
func TestLiveProxies(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/ledger", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]admin.ProxyStatus{
			{Node: "sidecar~10.0.0.9~web.a~shop.svc.cluster.local", Metadata: map[string]any{"LABELS": map[string]any{"app": "web"}}},
			{Node: "router~10.0.0.8~edge.a~a.svc.cluster.local", Metadata: map[string]any{"NAMESPACE": "edge", "COXSWAIN_NO_AGENT": "true"}},
			{Node: "tool"},
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	var r analysis.Reader
	if err := liveProxies(t.Context(), &r, strings.TrimPrefix(s.URL, "http://")); err != nil {
		t.Fatal(err)
	}
	want := []analysis.Proxy{
		{Name: "sidecar~10.0.0.9~web.a~shop.svc.cluster.local", Namespace: "shop", Labels: map[string]string{"app": "web"}},
		{Name: "router~10.0.0.8~edge.a~a.svc.cluster.local", Namespace: "edge", Stock: true},
		{Name: "tool"},
	}
	if !reflect.DeepEqual(r.Input.Proxies, want) {
		t.Errorf("%+v, want %+v", r.Input.Proxies, want)
	}
}

// Secrets are known by their names where all of them are: those of Kubernetes are read one by one.
func TestSecretsOfLiveMesh(t *testing.T) {
	for _, c := range []struct {
		plugins []string
		known   bool
	}{{nil, false}, {[]string{"generator/sds"}, true}, {[]string{"generator/sds", "config/secrets"}, false}} {
		var r analysis.Reader
		if err := readLive(t.Context(), &r, liveMesh(t, c.plugins...)); err != nil {
			t.Fatal(err)
		}
		if known := r.Input.Secrets != nil; known != c.known || known && !has(r.Input.Secrets, "edge/web") {
			t.Errorf("%q: %v", c.plugins, r.Input.Secrets)
		}
	}
}

func has(all analysis.Credentials, key string) bool {
	_, ok := all[key]
	return ok
}
