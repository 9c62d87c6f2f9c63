package ui

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
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
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/core/ui"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	testprogram "github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var program string

var update = flag.Bool("update", false, "make the screenshot in docs anew")

func TestMain(m *testing.M) { mesh.Quick(&program, m.Run) }

const entry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: NAME, namespace: shop, annotations: {note: "<script>globalThis.planted=1</script>"}, labels: {app: "<b>labelled"}}
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
	follow(t, plane, refusing())
	script := []string{"stories/stories.mjs", "http://" + plane.Monitoring + "/ui/", chromium, program}
	if *update {
		script = append(script, "../../docs")
	}
	leave := func() {}
	steps := play(t, modules, map[string]func(){
		"edit":    func() { write("later") },
		"plan":    func() { leave = plan(t, plane) },
		"making":  func() { leave() },
		"mistake": func() { mistake(t, dir) },
		"graph": func() {
			follow(t, plane, accepting("sidecar~10.0.0.2~api.shop~shop.svc.cluster.local"))
			odd := accepting("sidecar~10.0.0.3~<b>odd.shop~shop.svc.cluster.local")
			odd.metadata = map[string]any{
				"LABELS": map[string]any{"app": image, "version": image}, "CLUSTER_ID": image, "NAME": image, "WORKLOAD_NAME": image, "ISTIO_VERSION": image,
			}
			follow(t, plane, odd)
		},
	}, script...)
	want := []string{
		"glance", "edit", "live", "explained", "all pages", "graph", "where", "mesh", "history", "plan", "making", "planned", "acted", "mistake", "mistaken",
	}
	if !slices.Equal(steps, want) {
		t.Fatalf("steps %q, want %q", steps, want)
	}
	waitAudited(t, audited, `"what":"pin"`, `"what":"restart"`, `"what":"swap"`)
}

// TestDecisions: how far proxies and views are, the rates of the graph, and what is decided on the
// page: a change that some proxies try is promoted, or taken back; what too much would go by is
// dropped, and applied.
func TestDecisions(t *testing.T) {
	need.All(t)
	chromium, modules := browser(t)
	dir := t.TempDir()
	write := func(names ...string) {
		for _, name := range names {
			text := bytes.ReplaceAll([]byte(entry), []byte("NAME"), []byte(name))
			if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("cart", "stock")
	audited := filepath.Join(t.TempDir(), "audit.jsonl")
	plane := mesh.Start(t, program, dir, "--uiActions", "--auditLog", audited, "--rolloutFirst", "namespace=canary", "--rolloutHold", "1h")
	follow(t, plane, accepting("sidecar~10.0.0.1~web.canary~canary.svc.cluster.local"))
	follow(t, plane, accepting("sidecar~10.0.0.2~api.shop~shop.svc.cluster.local"))
	silent := accepting("sidecar~10.0.0.3~silent.shop~shop.svc.cluster.local")
	silent.silent = true
	follow(t, plane, silent)
	steps := play(t, modules, map[string]func(){
		"rate":   func() { write("first") },
		"change": func() { write("second") },
		"lose": func() {
			for _, name := range []string{"cart", "stock", "first", "second"} {
				if err := os.Remove(filepath.Join(dir, name+".yaml")); err != nil {
					t.Error(err)
				}
			}
		},
	}, "stories/decisions.mjs", "http://"+plane.Monitoring+"/ui/", chromium, program)
	if want := []string{"standing", "rate", "rated", "change", "staged", "lose", "held"}; !slices.Equal(steps, want) {
		t.Fatalf("steps %q, want %q", steps, want)
	}
	waitAudited(t, audited, `"what":"rollout promote"`, `"what":"rollout abort"`, `"what":"hold apply"`, `"what":"hold drop"`)
}

// waitAudited waits until the audit log says that it was done on the page.
func waitAudited(t *testing.T, file string, words ...string) {
	t.Helper()
	wait.For(t, "the audit log says who did what on the page", func() error {
		text, err := os.ReadFile(file)
		for _, want := range append(words, `"by":"page"`) {
			if err == nil && !bytes.Contains(text, []byte(want)) {
				err = fmt.Errorf("no %s in %s", want, text)
			}
		}
		return err
	})
}

// mistake writes an object that is refused, with markup in its name and in what is wrong with it,
// and a file that can't be read.
func mistake(t *testing.T, dir string) {
	t.Helper()
	wrong := `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: "<b>wrong", namespace: shop, labels: {app: "<img src=x onerror='globalThis.planted=1'>"}}
spec:
  hosts: ["<img src=x onerror='globalThis.planted=1'>"]
  http: [{route: [{destination: {host: cart.example}, weight: -5}]}]
`
	for name, text := range map[string]string{"wrong.yaml": wrong, "unread.yaml": "kind: [\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusedEvents: a page whose events are refused, as the most clients are there already, says
// why, and is connected when others have gone, without anybody's doing.
func TestRefusedEvents(t *testing.T) {
	need.All(t)
	chromium, modules := browser(t)
	plane := mesh.Start(t, program, t.TempDir())
	plane.Ready(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range ui.Most {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+plane.Monitoring+"/ui/events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	play(t, modules, map[string]func(){"refused": leave}, "stories/refused.mjs", "http://"+plane.Monitoring+"/ui/", chromium)
}

// TestOfOneNamespace: who may see proxies of one namespace alone sees these on the page: how far
// they are, what they have and why, and where requests through them go.
func TestOfOneNamespace(t *testing.T) {
	need.All(t)
	chromium, modules := browser(t)
	host := elsewhere(t)
	dir, tokens := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cart.yaml"), bytes.ReplaceAll([]byte(entry), []byte("NAME"), []byte("cart")), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tokens, "tokens.yaml")
	token, err := exec.CommandContext(t.Context(), program, "token", "create", "--file", file, "--namespace", "shop", "--service-account", "web").Output()
	if err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(tokens, "plugins.yaml")
	text := fmt.Sprintf(`plugins:
- {name: files, kind: config, builtin: config/file, config: {dir: %q}}
- {name: mesh, kind: config, builtin: config/mesh}
- {name: serviceentry, kind: registry, builtin: registry/serviceentry}
- {name: istio, kind: generator, builtin: generator/istio}
- {name: tokens, kind: authenticator, builtin: authenticator/token, config: {file: %q}}
`, dir, file)
	if err := os.WriteFile(plugins, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(wait.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	at := net.JoinHostPort(host, port)
	plane := mesh.Start(t, program, "", "--monitoringAddr", at, "--plugins", plugins)
	own, other := "sidecar~10.0.0.2~web.shop~shop.svc.cluster.local", "sidecar~10.0.0.3~till.bank~bank.svc.cluster.local"
	follow(t, plane, accepting(own))
	follow(t, plane, accepting(other))
	play(t, modules, nil, "stories/own.mjs", "http://"+at+"/ui/", chromium, string(bytes.TrimSpace(token)), own, other)
}

// elsewhere is an address of this machine that is not its loopback: who asks there comes from
// elsewhere.
func elsewhere(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	need.Impossible(t, "this machine has no address but its loopback")
	return ""
}

// play runs a script of stories, does what is to be done at its steps, and returns these.
func play(t *testing.T, modules string, do map[string]func(), script ...string) (steps []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script...)
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
	for lines := bufio.NewScanner(out); lines.Scan(); {
		steps = append(steps, lines.Text())
		if step := do[lines.Text()]; step != nil {
			step()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, after %q:\n%s", err, steps, complaint.String())
	}
	return steps
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

// image is markup that somebody may have written into any text.
const image = `<img src=x onerror="globalThis.planted=1">`

// client is a proxy that asks for resources by type and name.
type client struct {
	id       string
	wants    map[string][]string
	metadata map[string]any
	// refusal is what it says of listeners; empty: it accepts them. A silent one says nothing of
	// anything.
	refusal string
	silent  bool
}

// refusing is a proxy that accepts clusters and refuses listeners, with markup in what it says.
func refusing() client {
	return client{
		id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", wants: map[string][]string{clusters: nil, listeners: nil},
		refusal: image + " virtualOutbound",
	}
}

// accepting is a proxy that accepts all that it asks for.
func accepting(id string) client {
	return client{id: id, wants: map[string][]string{
		clusters: nil, listeners: nil, routes: {"80"}, endpoints: {"outbound|80||cart.example"},
	}}
}

// follow connects a proxy until the test ends.
func follow(t *testing.T, plane *mesh.Plane, c client) {
	t.Helper()
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := structpb.NewStruct(c.metadata)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: c.id, Metadata: metadata}
	for _, typeURL := range slices.Sorted(maps.Keys(c.wants)) {
		if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: c.wants[typeURL]}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			if c.silent {
				continue
			}
			r := &discoveryv3.DiscoveryRequest{
				TypeUrl: answer.TypeUrl, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce, ResourceNames: c.wants[answer.TypeUrl],
			}
			if answer.TypeUrl == listeners && c.refusal != "" {
				r.VersionInfo, r.ErrorDetail = "", &status.Status{Message: c.refusal}
			}
			_ = stream.Send(r)
		}
	}()
}
