package ui

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
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
	"github.com/coxswain-mesh/coxswain/test/wait"
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

const virtualService = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: planted, namespace: shop}
spec:
  hosts: [PLACE.example]
  http:
  - name: '<img src=x onerror="globalThis.planted=1">'
    match: [{uri: {prefix: /beta}}]
    route: [{destination: {host: PLACE.example}}]
  - name: rest
    route: [{destination: {host: PLACE.example}}]
`

const httpRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: shop}
spec:
  parentRefs: [{name: front}]
  hostnames: [front.example]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: other.example}}]}]
`

// TestStories: what is to be seen at first glance, what changes while somebody looks, each page by
// keys and clicks, where a request goes, the mesh, what revisions changed, actions of somebody who
// has logged in, nothing of what was planted as markup, and nothing that axe finds.
func TestStories(t *testing.T) {
	need.All(t)
	chromium, modules := browser(t)
	dir := t.TempDir()
	write := func(name string) {
		text := bytes.ReplaceAll([]byte(entry), []byte("NAME"), []byte(name))
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cart")
	routed := bytes.ReplaceAll([]byte(virtualService), []byte("PLACE"), []byte("cart"))
	if err := os.WriteFile(filepath.Join(dir, "route.yaml"), routed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "front.yaml"), []byte(httpRoute), 0o600); err != nil {
		t.Fatal(err)
	}
	audited := filepath.Join(t.TempDir(), "audit.jsonl")
	plane := mesh.Start(t, program, dir, "--uiActions", "--auditLog", audited)
	refuse(t, plane)
	login, err := exec.CommandContext(t.Context(), program, "ui", "--addr", plane.Monitoring).CombinedOutput()
	if err != nil || !bytes.Contains(login, []byte("#/login?code=")) {
		t.Fatalf("%v: %s", err, login)
	}

	cmd := exec.CommandContext(t.Context(), "node", "stories/stories.mjs", "http://"+plane.Monitoring+"/ui/", chromium, string(bytes.TrimSpace(login)))
	if *update {
		cmd.Args = append(cmd.Args, "../../docs")
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
	leave := func() {}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		steps = append(steps, lines.Text())
		switch lines.Text() {
		case "edit":
			write("later")
		case "plan":
			leave = plan(t, plane)
		case "making":
			leave()
		case "graph":
			follow(t, plane, "sidecar~10.0.0.2~api.shop~shop.svc.cluster.local", map[string][]string{
				clusters: nil, listeners: nil, routes: {"80"}, endpoints: {"outbound|80||cart.example"},
			}, "")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, after %q:\n%s", err, steps, complaint.String())
	}
	want := []string{
		"glance", "edit", "live", "explained", "all pages", "graph", "where", "mesh", "history", "plan", "making", "planned", "acted", "dark",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	wait.For(t, "the audit log says who did what on the page", func() error {
		text, err := os.ReadFile(audited)
		for _, want := range []string{`"by":"page"`, `"what":"pin"`, `"what":"restart"`, `"what":"swap"`} {
			if err == nil && !bytes.Contains(text, []byte(want)) {
				err = fmt.Errorf("no %s in %s", want, text)
			}
		}
		return err
	})
}

// plan asks for a dry run of a program that says nothing, with markup in its name, until the
// function that it returns is called, or the test ends.
func plan(t *testing.T, plane *mesh.Plane) (leave func()) {
	silent := filepath.Join(t.TempDir(), "<b>silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\nexec tail -f /dev/null\n"), 0o700); err != nil { // #nosec G306 -- it is to run
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "plugins", "swap", "serviceentry", "--process", silent, "--dry-run", "--addr", plane.Monitoring)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leave()
		if err := cmd.Wait(); err == nil {
			t.Error("a program that says nothing is a plugin")
		}
	})
	return leave
}

// browser is the path of Chromium, and the folder with what drives it.
func browser(t *testing.T) (chromium, modules string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		need.Missing(t, "chromium; on Debian apt-get install chromium gets it")
	}
	if _, err := exec.LookPath("node"); err != nil {
		need.Missing(t, "node; install Node.js 20 or newer")
	}
	return chromium, testprogram.Cached(t, "test/ui/stories/package-lock.json", "ui-stories",
		"node_modules/playwright-core/package.json")
}

// Types of resources.
const (
	clusters  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listeners = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routes    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// refuse is a proxy that accepts clusters and refuses listeners, with markup in what it says, until
// the test ends.
func refuse(t *testing.T, plane *mesh.Plane) {
	follow(t, plane, "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", map[string][]string{clusters: nil, listeners: nil},
		`<img src=x onerror="globalThis.planted=1"> virtualOutbound`)
}

// follow is a proxy that asks for resources by type and name until the test ends, and accepts them;
// listeners it refuses where a reason is given.
func follow(t *testing.T, plane *mesh.Plane, id string, wants map[string][]string, refusal string) {
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, typeURL := range slices.Sorted(maps.Keys(wants)) {
		if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: id}, TypeUrl: typeURL, ResourceNames: wants[typeURL]}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			r := &discoveryv3.DiscoveryRequest{
				TypeUrl: answer.TypeUrl, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce, ResourceNames: wants[answer.TypeUrl],
			}
			if answer.TypeUrl == listeners && refusal != "" {
				r.VersionInfo, r.ErrorDetail = "", &status.Status{Message: refusal}
			}
			_ = stream.Send(r)
		}
	}()
}
