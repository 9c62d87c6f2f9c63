package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const routes = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"

// pod is a proxy that connects as one of a pod does, under names that no file has.
type pod struct{ kind, ip, name, namespace, account, labels string }

// TestExpectationsLive: expectations that hold of a directory hold of a control plane that serves
// it, of its connected proxies by their labels, and of its bug report when it is gone; what was
// edited meanwhile fails, and so does a workload that nobody is.
func TestExpectationsLive(t *testing.T) {
	config := t.TempDir()
	if err := os.CopyFS(config, os.DirFS("../../examples/expectations/config")); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, config)
	for _, p := range []pod{
		{"sidecar", "10.0.0.1", "web-7d9", "shop", "web", "app=web"},
		{"sidecar", "10.0.0.2", "cart-v1-5c4", "shop", "cart", "app=cart,version=v1"},
		{"sidecar", "10.0.0.3", "cart-v2-9ab", "shop", "cart", "app=cart,version=v2"},
		{"sidecar", "10.0.0.4", "who-1", "other", "stranger", "app=stranger"},
		{"router", "10.0.0.5", "gw-2", "edge", "gateway", "istio=ingressgateway"},
	} {
		p.connect(t, plane)
	}
	play := func(want int, text string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append([]string{"test"}, args...)...).CombinedOutput()
		code := 0
		if e, ok := err.(*exec.ExitError); ok {
			code = e.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want || !strings.Contains(string(out), text) {
			t.Errorf("coxswain test %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), code, want, text, out)
		}
	}
	const example, allPassed = "../../examples/expectations", "11 passed, 0 failed\nall 10 rules are touched\n"
	live := []string{example, "--live", "--addr", plane.HTTP}
	play(0, allPassed, append(live, "--all-rules")...)

	report := filepath.Join(t.TempDir(), "report.zip")
	if out, err := exec.CommandContext(t.Context(), program, "bug-report", "--addr", plane.HTTP, "-o", report).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "without") {
		t.Fatalf("%v: %s", err, out)
	}
	replace(t, filepath.Join(config, "routes.yaml"), "weight: 90", "weight: 60")
	replace(t, filepath.Join(config, "routes.yaml"), "weight: 10", "weight: 40")
	wait.For(t, "the edit is served", func() error {
		return pageHas(plane, "/debug/topology?find=cart", `"percent": 60`)
	})
	play(1, "10 passed, 1 failed", live...)

	file := filepath.Join(t.TempDir(), "expectations.yaml")
	text := "workloads:\n  db: {namespace: shop, labels: {app: db}}\nexpectations:\n- {name: one, request: {from: db, " +
		"url: http://cart.shop/}, expect: {closed: true}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	play(2, "workloads.db: no connected proxy is one of it: a sidecar in namespace shop, label app=db", file, "--live", "--addr", plane.HTTP)
	play(2, "workloads.db wants ip", file)
	if code := plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	play(0, allPassed, example, "--from", report)
}

// pageHas reports a page that lacks a text.
func pageHas(plane *mesh.Plane, path, text string) error {
	got, err := plane.Get(path)
	if err == nil && !strings.Contains(got, text) {
		err = fmt.Errorf("%s lacks %q: %.500s", path, text, got)
	}
	return err
}

// replace changes a text of a file.
func replace(t *testing.T, file, old, by string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s lacks %q: %v", file, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, by)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestExpectationsOfConnections: routes for TCP and TLS count as rules; those that no connection
// comes to are listed.
func TestExpectationsOfConnections(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config/all.yaml": `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.example]
  addresses: [10.5.0.1]
  ports: [{number: 9000, name: tcp, protocol: TCP}, {number: 9443, name: tls, protocol: TLS}]
  resolution: STATIC
  endpoints: [{address: 10.1.0.1, labels: {version: v1}}, {address: 10.1.0.2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: db, namespace: shop}
spec:
  host: db.example
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.example]
  tcp:
  - match: [{port: 9000}]
    route: [{destination: {host: db.example, subset: v1}, weight: 80}, {destination: {host: db.example, subset: v2}, weight: 20}]
  tls:
  - match: [{port: 9443, sniHosts: [db.example]}]
    route: [{destination: {host: db.example, subset: v2}}]
`, "expectations.yaml": `workloads:
  web: {namespace: shop, ip: 10.0.0.1}
expectations:
- name: most connections go to v1
  request: {from: web, url: "tcp://10.5.0.1:9000"}
  expect: {to: [{host: db.example, subset: v1, percent: 80, endpoints: ["10.1.0.1:9000"]}, {host: db.example, subset: v2, percent: 20}]}
- name: TLS goes to v2
  request: {from: web, url: "tcp://10.5.0.1:9443", sni: db.example}
  expect: {to: [{host: db.example, subset: v2, percent: 100}]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ run, want string }{
		{"", "2 passed, 0 failed\nall 4 rules are touched"},
		{"tcp://10.5.0.1:9000", "2 of 4 rules are touched by no expectation:\n  VirtualService shop/db   tcp route port 9000"},
	} {
		if c.run != "" {
			replace(t, filepath.Join(dir, "expectations.yaml"), c.run, "tcp://10.5.0.1:9443")
		}
		out, _ := exec.CommandContext(t.Context(), program, "test", dir).CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("want %q:\n%s", c.want, out)
		}
	}
}

// connect asks for all that an Envoy asks for, and accepts it, until the test ends.
func (p pod) connect(t *testing.T, plane *mesh.Plane) {
	t.Helper()
	labels := map[string]any{}
	for pair := range strings.SplitSeq(p.labels, ",") {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	facts, err := structpb.NewStruct(map[string]any{
		"NAMESPACE": p.namespace, "SERVICE_ACCOUNT": p.account, "LABELS": labels, "CLUSTER_ID": "Kubernetes",
		"ISTIO_VERSION": "1.31.0",
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: p.kind + "~" + p.ip + "~" + p.name + "." + p.namespace + "~" + p.namespace + ".svc.cluster.local", Metadata: facts}
	wants := map[string][]string{clusters: nil, listeners: nil}
	for _, typeURL := range []string{clusters, listeners} {
		if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			_ = stream.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: r.TypeUrl, VersionInfo: r.VersionInfo, ResponseNonce: r.Nonce,
				ResourceNames: wants[r.TypeUrl],
			})
			for next, names := range namedIn(r) {
				if len(names) > 0 && !slices.Equal(names, wants[next]) {
					wants[next] = names
					_ = stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: next, ResourceNames: names})
				}
			}
		}
	}()
	wait.For(t, p.name+" has its routes", func() error {
		return pageHas(plane, "/debug/config_dump?types=rds&proxyID="+p.name+"."+p.namespace, "virtual_hosts")
	})
}

// namedIn are the names of other types in a response: route configurations of listeners, and load
// assignments of clusters.
func namedIn(r *discoveryv3.DiscoveryResponse) map[string][]string {
	all := map[string][]string{}
	for _, a := range r.Resources {
		var c clusterv3.Cluster
		var l listenerv3.Listener
		switch {
		case a.UnmarshalTo(&c) == nil && c.GetType() == clusterv3.Cluster_EDS:
			name := c.GetEdsClusterConfig().GetServiceName()
			if name == "" {
				name = c.Name
			}
			all[endpoints] = append(all[endpoints], name)
		case a.UnmarshalTo(&l) == nil:
			for _, chain := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
				for _, f := range chain.GetFilters() {
					var m hcmv3.HttpConnectionManager
					if f.GetTypedConfig().UnmarshalTo(&m) == nil && m.GetRds() != nil {
						all[routes] = append(all[routes], m.GetRds().RouteConfigName)
					}
				}
			}
		}
	}
	for typeURL, names := range all {
		slices.Sort(names)
		all[typeURL] = slices.Compact(names)
	}
	return all
}
