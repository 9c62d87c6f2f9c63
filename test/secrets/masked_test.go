package secrets

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/otlp"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	clusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	routeType     = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	extensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// settings has secrets wherever users write them: each begins with marked-, what is none with
// seen-.
const settings = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: edge}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: edge}
spec:
  hosts: ["*"]
  gateways: [gateway]
  http:
  - match: [{headers: {authorization: {exact: marked-matcher}}}]
    headers: {request: {set: {x-api-key: marked-header, x-version: seen-header}}}
    directResponse: {status: 200, body: {string: seen-body}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patch, namespace: edge}
spec:
  configPatches:
  - applyTo: CLUSTER
    patch:
      operation: ADD
      value:
        name: seen-cluster
        connect_timeout: 1s
        type: STATIC
        metadata: {filter_metadata: {seen-metadata: {password: PASSWORD, mode: seen-mode, nested: {api_key: marked-nested}}}}
        transport_socket:
          name: envoy.transport_sockets.tls
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
            common_tls_context:
              tls_certificates:
              - {certificate_chain: {inline_string: seen-chain}, private_key: {inline_string: marked-inline-key}, password: {inline_string: marked-key-password}}
---
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata:
  name: filter
  namespace: edge
  annotations: {applied: '{"spec":{"pluginConfig":{"password":"marked-annotation","mode":"seen-annotation"}}}'}
spec:
  url: https://seen.example/filter.wasm
  pluginConfig: {password: marked-plugin, mode: seen-plugin, deep: [{auth_token: marked-deep}]}
  vmConfig: {env: [{name: SEEN, value: marked-environment, valueFrom: INLINE}]}
`

// secretMesh are the mesh's settings.
const secretMesh = `
defaultConfig: {tracing: {lightstep: {address: "seen-tracer.example:80", accessToken: marked-tracer}}}
`

// refuser is an xDS client that asks for one type, and refuses the first answer where it has a
// reason. It returns that.
func refuser(t *testing.T, plane *mesh.Plane, node *corev3.Node, typeURL, reason string, names ...string) []*anypb.Any {
	t.Helper()
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: names}); err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	answer := &discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, ResponseNonce: first.Nonce, VersionInfo: first.VersionInfo}
	if reason != "" {
		answer.VersionInfo, answer.ErrorDetail = "", &status.Status{Code: 3, Message: reason}
	}
	if err := stream.Send(answer); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			next, err := stream.Recv()
			if err != nil {
				return
			}
			_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names, ResponseNonce: next.Nonce, VersionInfo: next.VersionInfo})
		}
	}()
	return first.Resources
}

// TestConfiguration: secrets that stand in configuration, and what proxies repeat of them and say
// of themselves, are in no page, dump, archive, recording, difference or log, and not in the
// history on disk, nor in traces. What is no secret is shown, and proxies get what was written.
func TestConfiguration(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	file, meshFile := filepath.Join(dir, "settings.yaml"), filepath.Join(t.TempDir(), "mesh.yaml")
	put(t, file, fill(settings, "PASSWORD", "marked-first"))
	put(t, meshFile, secretMesh)
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, plugins, strings.Join(strings.Split(set, "\n")[:5], "\n"))
	traced := otlp.Start(t, nil)
	plane := mesh.Start(t, program, dir, "--plugins", plugins, "--meshConfig", meshFile, "--stateDir", state,
		"--secureGRPCAddr", "", "--traceEndpoint", traced.URL)
	plane.Ready(t)
	w := &world{plane: plane, dir: dir}

	node := &corev3.Node{}
	var bootstrap struct{ Node json.RawMessage }
	text := plane.Bootstrap(t, "--name", "web", "--namespace", "edge", "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway",
		"--metadata", "API_TOKEN=marked-node", "--metadata", "SEEN=seen-node")
	if err := json.Unmarshal(text, &bootstrap); err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(bootstrap.Node, node); err != nil {
		t.Fatal(err)
	}
	const refusal = "cluster seen-cluster: key marked-inline-key, metadata marked-first is bad; password=marked-said " +
		"Bearer marked-bearer https://me:marked-url@seen.example/"
	got := refuser(t, plane, node, clusterType, refusal)
	got = append(got, refuser(t, plane, node, extensionType, "", "extensions.istio.io/trafficextension/edge.filter~istio-translated-wasmplugin")...)
	got = append(got, refuser(t, plane, node, routeType, "", "http.8080")...)
	plane.Follow(t, text, "type.googleapis.com/envoy.config.listener.v3.Listener")
	var served strings.Builder
	for _, r := range got {
		served.Write(r.Value)
	}
	for _, secret := range []string{
		"marked-inline-key", "marked-key-password", "marked-first", "marked-nested", "marked-plugin", "marked-deep",
		"marked-environment", "marked-header", "marked-matcher",
	} {
		if !strings.Contains(served.String(), secret) {
			t.Errorf("proxies are not served %s", secret)
		}
	}
	w.shows(t, "seen.example", "proxies", "--refused")

	seen := map[string]string{}
	clean := func(where string, text []byte) {
		t.Helper()
		seen[where] = string(text)
		if at := strings.Index(string(text), "marked-"); at >= 0 {
			t.Errorf("%s has a secret: …%q…", where, text[max(0, at-80):min(len(text), at+60)])
		}
	}
	id := url.QueryEscape(node.Id)
	pages := []string{
		"/debug/config_dump?proxyID=" + id, "/debug/served?proxyID=" + id, "/debug/ecdsz?proxyID=" + id,
		"/debug/ledger?proxyID=" + id, "/debug/explain?all=true&proxyID=" + id, "/debug/rowz?table=mesh",
	}
	for _, kind := range []string{"networking.istio.io/EnvoyFilter", "networking.istio.io/VirtualService", "extensions.istio.io/WasmPlugin"} {
		pages = append(pages, "/debug/rowz?table="+kind)
	}
	route := "/debug/route?proxyID=" + id + "&url=http://seen.example:8080/"
	pages = append(pages, route, "/debug/sidecarz?proxyID="+id, "/debug/reach?proxyID="+id)
	look := func() {
		t.Helper()
		for path, text := range leaks.Pages(t, plane.HTTP, pages...) {
			clean(path, decoded(text))
		}
		for path, text := range leaks.Monitoring(t, plane.Monitoring) {
			clean(path, text)
		}
	}
	look()
	for path, want := range map[string]string{
		pages[0]: "seen-cluster seen-mode seen-chain seen-header seen-plugin SEEN [redacted]",
		pages[1]: "seen-mode [redacted]", pages[2]: "seen-plugin [redacted]", pages[5]: "seen-tracer [redacted]",
		pages[6]: "seen-mode [redacted]", pages[7]: "seen-header [redacted]",
		pages[8]: "seen-plugin SEEN [redacted]", "/debug/nodes": "seen-node [redacted]",
		"/debug/mesh":    "seen-tracer [redacted]",
		"/debug/configz": "seen-mode seen-plugin seen-annotation [redacted]",
		"/debug/configs": "seen-annotation [redacted]", "/debug/refusals": "cluster seen-cluster seen.example",
		route: "Verdict", "/debug/sidecarz?proxyID=" + id: "servicesByHostname",
	} {
		for word := range strings.FieldsSeq(want) {
			if !strings.Contains(seen[path], word) {
				t.Errorf("%s doesn't show %s: %.2000s", path, word, seen[path])
			}
		}
	}

	put(t, file, fill(settings, "PASSWORD", "marked-second", "seen-mode", "seen-other"))
	w.shows(t, "EnvoyFilter edge/patch changed", "history", "-o", "wide")
	revisions := w.revisions(t)
	difference := []string{"diff", "--from", revisions[0], "--to", revisions[len(revisions)-1], "-o", "wide"}
	w.shows(t, "(masked) changed", difference...)
	w.shows(t, `"seen-other"`, difference...)
	for _, args := range [][]string{
		difference, {"config"}, {"views"}, {"plugins"}, {"proxy-status"}, {"history"},
		{"explain", "web.edge", "cluster", "seen-cluster"}, {"record", "proxies"}, {"analyze", "--live"},
	} {
		out, _ := w.run(args...)
		if out == "" {
			t.Errorf("coxswain %s says nothing", args)
		}
		clean("coxswain "+args[0], []byte(out))
	}
	w.planned(t, meshFile, clean)
	w.archive(t, clean)
	changes := "/debug/changes?from=" + revisions[0] + "&to=" + revisions[len(revisions)-1]
	pages = append(pages, changes)
	look()
	if !strings.Contains(seen[changes], "(masked) changed") || !strings.Contains(seen[changes], "seen-other") {
		t.Errorf("%s doesn't show what changed: %.2000s", changes, seen[changes])
	}
	if text := seen["/debug/topology"]; !strings.Contains(text, "edge/web") || !strings.Contains(text, "[redacted]") {
		t.Errorf("/debug/topology doesn't show the route: %.2000s", text)
	}
	wait.For(t, "a trace says of the edit", func() error {
		text := fmt.Sprint(traced.Traces())
		clean("the traces", []byte(text))
		if !strings.Contains(text, "settings.yaml") {
			return fmt.Errorf("none is of settings.yaml: %.500s", text)
		}
		return nil
	})
	w.recordings(t, clean, map[string]string{"files": "seen-cluster", "istio": "seen-cluster"})
	clean("the log", []byte(plane.Log()))

	out, err := w.run("pin", revisions[0])
	if err != nil || !strings.Contains(out, "does not outlive a restart") {
		t.Errorf("a pin says %v %s", err, out)
	}
	plane.Kill()
	disk := read(t, filepath.Join(state, "history.db"))
	clean("the history on disk", disk)
	if !strings.Contains(string(disk), "envoy.filters.network.http_connection_manager") {
		t.Error("the history on disk has no resource: this test can't see one")
	}
	w.plane = plane.Again(t)
	w.plane.Ready(t)
	again := refuser(t, w.plane, node, clusterType, "")
	i := slices.IndexFunc(again, func(a *anypb.Any) bool { return strings.Contains(string(a.Value), "seen-cluster") })
	if i < 0 || !strings.Contains(string(again[i].Value), "marked-inline-key") || !strings.Contains(string(again[i].Value), "marked-second") {
		t.Errorf("after a restart the pinned proxy is served %q", again)
	}
	clean("the log after a restart", []byte(w.plane.Log()))
}

// revisions are the numbers of those that are kept.
func (w *world) revisions(t *testing.T) (all []string) {
	t.Helper()
	text, err := w.plane.Get("/debug/history")
	if err != nil {
		t.Fatal(err)
	}
	var h struct {
		Revisions []struct {
			Kept bool
			Push struct{ Revision uint64 }
		}
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.Revisions {
		if r.Kept {
			all = append(all, fmt.Sprint(r.Push.Revision))
		}
	}
	return all
}

// planned looks at what a plan says, against what runs and against another directory.
func (w *world) planned(t *testing.T, meshFile string, clean func(where string, text []byte)) {
	t.Helper()
	other := t.TempDir()
	put(t, filepath.Join(other, "settings.yaml"), fill(settings, "PASSWORD", "marked-third", "seen-mode", "seen-other"))
	for where, args := range map[string][]string{
		"a plan of what runs": {"plan", "-f", other, "--addr", w.plane.HTTP, "-o", "wide", "--meshConfig", meshFile},
	} {
		out, _ := exec.Command(program, args...).CombinedOutput()
		if !strings.Contains(string(out), "(masked) changed") {
			t.Errorf("%s says %s", where, out)
		}
		clean(where, out)
	}
}

// archive looks at all files of a bug report.
func (w *world) archive(t *testing.T, clean func(where string, text []byte)) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.zip")
	if out, err := w.run("bug-report", "-o", name); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	found := false
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "seen-chain")
		clean("the archive's "+f.Name, decoded(text))
	}
	if !found {
		t.Error("the archive has no cluster: this test can't see one")
	}
}

// decoded is a page with what it has in base64 beside it.
func decoded(page []byte) []byte {
	all := slices.Clone(page)
	for field := range bytes.SplitSeq(page, []byte{'"'}) {
		if raw, err := base64.StdEncoding.DecodeString(string(field)); err == nil {
			all = append(all, raw...)
		}
	}
	return all
}
