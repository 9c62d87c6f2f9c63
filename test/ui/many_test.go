package ui

import (
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

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// What is looked at.
const (
	manyProxies = 2000
	manyObjects = 10_000
)

// TestMany: with 2000 proxies and 10,000 resources the page has as many rows as can be seen, finds
// and shows the last one. Its first paint waits for no more requests and bytes than with nothing to
// look at. It prints how long what people wait for took, and how large it was (make ui-measure).
func TestMany(t *testing.T) {
	need.All(t)
	chromium, modules := browser(t)
	dir := t.TempDir()
	var text strings.Builder
	for i := range manyObjects {
		if i%1000 == 0 && i > 0 {
			put(t, dir, i, &text)
		}
		host, route := fmt.Sprintf("s%04d", i/2), fmt.Sprintf("r%04d", i/2)
		named := strings.NewReplacer("NAME", host, "PLACE", host, "planted", route)
		text.WriteString("---\n" + named.Replace([]string{entry, virtualService}[i%2]))
	}
	put(t, dir, manyObjects, &text)
	plane := mesh.Start(t, program, dir)
	crowd(t, plane)
	cmd := exec.CommandContext(t.Context(), "node", "stories/many.mjs", "http://"+plane.Monitoring+"/ui/", chromium,
		fmt.Sprint(manyProxies), fmt.Sprint(manyObjects))
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, dir string, number int, text *strings.Builder) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", number)), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text.Reset()
}

// crowd are proxies that have all endpoints of one service, and one that has all clusters, too,
// until the test ends.
func crowd(t *testing.T, plane *mesh.Plane) {
	t.Helper()
	var conn *grpc.ClientConn
	for i := range manyProxies {
		if i%500 == 0 { // a connection has a bound
			c, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(1<<30)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			conn = c
		}
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		node := &corev3.Node{Id: fmt.Sprintf("sidecar~10.0.%d.%d~p%04d.shop~shop.svc.cluster.local", i/250, i%250+1, i)}
		wants := map[string][]string{endpoints: {"outbound|80||s0000.example"}}
		if i == 0 {
			wants[clusters] = nil
		}
		for typeURL, names := range wants {
			if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: names}); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			for {
				a, err := stream.Recv()
				if err != nil {
					return
				}
				_ = stream.Send(&discoveryv3.DiscoveryRequest{
					TypeUrl: a.TypeUrl, VersionInfo: a.VersionInfo, ResponseNonce: a.Nonce, ResourceNames: wants[a.TypeUrl],
				})
			}
		}()
	}
}
