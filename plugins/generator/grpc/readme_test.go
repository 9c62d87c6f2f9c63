package grpc_test

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/grpc"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// TestReadme asks for what the README's example names.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	metadata, err := structpb.NewStruct(map[string]any{"GENERATOR": "grpc", "NAMESPACE": "shop"})
	if err != nil {
		t.Fatal(err)
	}
	node, err := proto.Marshal(&corev3.Node{Id: "client", Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, grpc.Plugin(), config)
	h.Update("services", []*sdk.Row{sdk.ServiceRow(&sdk.Service{
		Host: "echo.shop.svc.mesh.example", Namespace: "shop", Ports: []*sdk.Port{{Number: 7070, Name: "grpc", Protocol: "GRPC"}},
	})})
	const listeners = "type.googleapis.com/envoy.config.listener.v3.Listener"
	p := &sdk.Proxy{Node: node, Types: []string{listeners}}
	h.Attach(p)
	name := strings.TrimSpace(blocks[1].Text)
	if body := h.Resources(p.Connection, listeners, name)[name]; !strings.Contains(string(body), "echo.shop.svc.mesh.example") {
		t.Errorf("%s: %q", name, body)
	}
}
