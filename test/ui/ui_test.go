package ui

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/need"
	testprogram "github.com/coxswain-mesh/coxswain/test/program"
)

var program string

var update = flag.Bool("update", false, "make the screenshot in docs anew")

func TestMain(m *testing.M) { mesh.Quick(&program, m.Run) }

const entry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: NAME, namespace: shop, annotations: {note: "<script>globalThis.planted=1</script>"}}
spec:
  hosts: [NAME.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.1}]
`

// TestStories: what is to be seen at first glance, what changes while somebody looks, each page by
// keys and clicks, nothing of what was planted as markup, and nothing that axe finds.
func TestStories(t *testing.T) {
	need.All(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		need.Missing(t, "chromium; on Debian apt-get install chromium gets it")
	}
	if _, err := exec.LookPath("node"); err != nil {
		need.Missing(t, "node; install Node.js 20 or newer")
	}
	modules := testprogram.Cached(t, "test/ui/stories/package-lock.json", "ui-stories", "node_modules/playwright-core/package.json")
	dir := t.TempDir()
	write := func(name string) {
		text := bytes.ReplaceAll([]byte(entry), []byte("NAME"), []byte(name))
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cart")
	plane := mesh.Start(t, program, dir)
	refuse(t, plane)

	cmd := exec.CommandContext(t.Context(), "node", "stories/stories.mjs", "http://"+plane.Monitoring+"/ui/", chromium)
	if *update {
		cmd.Args = append(cmd.Args, "../../docs/ui.png")
	}
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if steps = append(steps, lines.Text()); lines.Text() == "edit" {
			write("later")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, after %q:\n%s", err, steps, complaint.String())
	}
	if want := []string{"glance", "edit", "live", "explained", "all pages", "dark"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
}

// refuse is a proxy that accepts clusters and refuses listeners, with markup in what it says, until
// the test ends.
func refuse(t *testing.T, plane *mesh.Plane) {
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const clusters, listeners = "type.googleapis.com/envoy.config.cluster.v3.Cluster", "type.googleapis.com/envoy.config.listener.v3.Listener"
	node := &corev3.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"}
	for _, typeURL := range []string{clusters, listeners} {
		if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			r := &discoveryv3.DiscoveryRequest{TypeUrl: answer.TypeUrl, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce}
			if answer.TypeUrl == listeners {
				r.VersionInfo, r.ErrorDetail = "", &status.Status{Message: `<img src=x onerror="globalThis.planted=1"> virtualOutbound`}
			}
			_ = stream.Send(r)
		}
	}()
}
