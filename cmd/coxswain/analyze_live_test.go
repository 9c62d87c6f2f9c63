package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// liveMesh answers as a control plane does that has two routes and a service.
func liveMesh(t *testing.T) string {
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
	show("/debug/tables", []admin.Table{{Name: "networking.istio.io/VirtualService"}, {Name: "services"}})
	show("/debug/rowz", []admin.Row{route("shop/good", "reviews"), route("shop/bad", "review")})
	show("/debug/registryz", []map[string]any{{"service": &pb.Service{Host: "reviews.shop.svc.cluster.local", Namespace: "shop"}}, {"fault": "broken"}})
	show("/debug/endpointShardz", map[string]any{})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestAnalyzeLive(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(context.Background(), []string{"analyze", "--live", "--addr", liveMesh(t)}, nil, nil, &out, &errOut)
	const want = `routes.yaml:3:1: VirtualService shop/bad: spec.http[0].route[0].destination.host: Referenced host not found: "review"`
	if code != 1 || !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errOut.String())
	}
}
