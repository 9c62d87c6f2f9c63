package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

const (
	lossSet = `plugins:
- {name: memory, kind: registry, builtin: registry/memory, config: {services: [{host: a.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}]}}
- {name: files, kind: config, builtin: config/file, rollback: {window: 300ms}, config: {dir: v1}}
- {name: istio, kind: generator, builtin: generator/istio}
`
	lossGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: door, namespace: test}
spec: {selector: {istio: ingressgateway}, servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]}
`
	lossRoute = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: route%[1]d, namespace: test}
spec: {hosts: [host%[1]d.example], gateways: [door], http: [{route: [{destination: {host: a.example}}]}]}
`
)

// TestSwapIsJudgedByWhatProxiesLose: a new instance that has lost the only route of a gateway, or
// half of few, does not take its plugin's place, and a dry run says so; one that has lost one of
// several does.
func TestSwapIsJudgedByWhatProxiesLose(t *testing.T) {
	for _, c := range []struct {
		had, has int
		stops    bool
	}{{1, 0, true}, {2, 1, true}, {2, 0, true}, {5, 1, true}, {5, 0, true}, {5, 4, false}, {1, 2, false}} {
		t.Run(fmt.Sprintf("%d of %d are left", c.has, c.had), func(t *testing.T) {
			dir := t.TempDir()
			for name, n := range map[string]int{"v1": c.had, "v2": c.has} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				text := lossGateway
				for i := range n {
					text += fmt.Sprintf(lossRoute, i)
				}
				place(t, filepath.Join(dir, name, "all.yaml"), text)
			}
			b := newBenchIn(t, dir, lossSet)
			sees(t, b.plane)
			next := filepath.Join(dir, "next.yaml")
			place(t, next, "dir: v2\n")
			run := func(args ...string) (string, int) {
				cmd := exec.Command(program, append([]string{"plugins", "swap", "files", "--config", next}, args...)...)
				cmd.Dir = dir
				out, _ := cmd.CombinedOutput()
				return string(out), cmd.ProcessState.ExitCode()
			}
			said, code := run("--dry-run")
			if stops := code == 3 && strings.Contains(said, "would go from 1 proxy"); stops != c.stops || !c.stops && code != 0 {
				t.Errorf("dry run: exit code %d: %s", code, said)
			}
			if said, code = run(); (code != 0) != c.stops {
				t.Errorf("exit code %d: %s", code, said)
			}
			if !c.stops {
				return
			}
			if said, code = run("--force"); code != 0 {
				t.Errorf("with --force: exit code %d: %s", code, said)
			}
		})
	}
}

// sees has a gateway's proxy be shown its routes, for as long as the test goes on.
func sees(t *testing.T, plane *mesh.Plane) {
	t.Helper()
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "test", "LABELS": map[string]any{"istio": "ingressgateway"}})
	if err != nil {
		t.Fatal(err)
	}
	const routes = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	node := &corev3.Node{Id: "router~10.9.0.1~door.test~test.svc.cluster.local", Metadata: metadata}
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: routes, ResourceNamesSubscribe: []string{"http.8080"}}); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil || len(r.Resources) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: routes, ResponseNonce: r.Nonce}); err != nil {
		t.Fatal(err)
	}
}
