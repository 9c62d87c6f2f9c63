package istio

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// spec is a row of a resource written as YAML.
func spec(t testing.TB, key string, m proto.Message, text string) *pb.Row {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	return resource(key, m)
}

// adding is an EnvoyFilter that adds a service's name to what the cluster is called in statistics.
func adding(t testing.TB, key, word string, created int64, more string) *pb.Row {
	t.Helper()
	r := spec(t, key, &networking.EnvoyFilter{}, more+`
configPatches:
- applyTo: CLUSTER
  match: {cluster: {service: web.default.svc.cluster.local}}
  patch: {operation: MERGE, value: {health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}, event_log_path: `+word+`}]}}
`)
	r.Created = created
	return r
}

// words are those that adding has added, in order.
func words(t *testing.T, body []byte) string {
	t.Helper()
	var m clusterv3.Cluster
	if err := proto.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range m.HealthChecks {
		out = append(out, h.EventLogPath) //nolint:staticcheck // any text will do
	}
	return strings.Join(out, " ")
}

func TestPatchOrder(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"), rows(config.EnvoyFilters,
		adding(t, "default/young", "young", 9, ""),
		adding(t, "default/old", "old", 5, ""),
		adding(t, "istio-system/root", "root", 7, ""),
		adding(t, "default/last", "last", 1, "priority: 10"),
		adding(t, "default/early", "early", 8, "priority: -10"),
		adding(t, "other/elsewhere", "elsewhere", 1, ""),
		adding(t, "default/others", "others", 1, "workloadSelector: {labels: {app: x}}"),
		adding(t, "default/mine", "mine", 6, "workloadSelector: {labels: {app: client}}"),
	))...)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "client"}}))
	if got, want := words(t, w.get(1, encode.ClusterType)[webCluster]), "early root old mine young last"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPatchesForProxies(t *testing.T) {
	for _, c := range []struct {
		name, match string
		want        bool
	}{
		{"version", `{proxyVersion: '^1\.31\.'}`, true},
		{"another version", `{proxyVersion: '^1\.30\.'}`, false},
		{"metadata", `{metadata: {TIER: gold, ZONE: z}}`, true},
		{"one other value", `{metadata: {TIER: gold, ZONE: other}}`, false},
		{"metadata that it lacks", `{metadata: {NOPE: ""}}`, false},
		{"a value's part", `{metadata: {TIER: gol}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches:
- {applyTo: CLUSTER, match: {proxy: `+c.match+`}, patch: {operation: ADD, value: {name: added}}}
- {applyTo: LISTENER, patch: {operation: ADD, value: {name: always}}}`)))
			w.attach(1, proxy(sidecarID, nil, map[string]any{"ISTIO_VERSION": "1.31.2", "TIER": "gold", "ZONE": "z"}))
			if got := w.get(1, encode.ClusterType)["added"] != nil; got != c.want {
				t.Errorf("added: %v", got)
			}
			if w.get(1, encode.ListenerType)["always"] == nil {
				t.Error("another patch doesn't ask")
			}
		})
	}
}

// TestProxiesShareViewsUnlessPatchesTellThemApart counts views, and what a patch costs others.
func TestProxiesShareViewsUnlessPatchesTellThemApart(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	for i := range uint64(3) {
		w.attach(i, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": []any{"a", "a", "b"}[i]}}))
		w.get(i, encode.ClusterType)
		w.get(i, encode.ListenerType)
	}
	before := w.out.placed[2]
	w.commit(rows(config.EnvoyFilters, adding(t, "default/f", "x", 1, "workloadSelector: {labels: {app: a}}")))
	if w.out.placed[0][encode.ClusterType] != w.out.placed[1][encode.ClusterType] {
		t.Error("proxies with the same patches share a view")
	}
	if w.out.placed[0][encode.ClusterType] == w.out.placed[2][encode.ClusterType] || w.out.placed[2][encode.ClusterType] != before[encode.ClusterType] {
		t.Error("a proxy without patches stays where it was")
	}
	if w.out.placed[0][encode.ListenerType] != w.out.placed[2][encode.ListenerType] {
		t.Error("patches to clusters don't tell listeners apart")
	}
	w.get(0, encode.ClusterType)
	reports := w.out.reports
	w.commit(rows(config.EnvoyFilters, adding(t, "default/f", "z", 1, "workloadSelector: {labels: {app: a}}")))
	if got := w.out.reports - reports; got != 1 {
		t.Errorf("%d resources are reported, want the one that changed", got)
	}
	if got := words(t, w.get(0, encode.ClusterType)[webCluster]); got != "z" {
		t.Errorf("patched: %q", got)
	}
}

// TestBadPatch: what can't be read is left out and reported; the others count.
func TestBadPatch(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches:
- {applyTo: CLUSTER, patch: {operation: ADD, value: {name: [not, a, name]}}}
- {applyTo: CLUSTER, patch: {operation: ADD, value: {name: good}}}`)))
	w.attach(1, proxy(sidecarID, nil, nil))
	if w.get(1, encode.ClusterType)["good"] == nil {
		t.Error("the good patch is there")
	}
	w.commit()
	if !slices.ContainsFunc(w.out.faults, func(f string) bool { return strings.Contains(f, "default/f") && strings.Contains(f, "name") }) {
		t.Errorf("faults: %q", w.out.faults)
	}
}

// TestPatchesOfListeners: what is removed is gone, and comes back; what is added stands beside what
// there is.
func TestPatchesOfListeners(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	plain := w.get(1, encode.ListenerType)
	filter := spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches:
- {applyTo: LISTENER, match: {listener: {name: 0.0.0.0_80}}, patch: {operation: REMOVE}}
- {applyTo: LISTENER, patch: {operation: ADD, value: {name: added, stat_prefix: s}}}
- {applyTo: LISTENER, patch: {operation: ADD, value: {name: virtualOutbound, stat_prefix: never}}}
- {applyTo: LISTENER, match: {context: SIDECAR_INBOUND}, patch: {operation: MERGE, value: {stat_prefix: in}}}`)
	w.commit(rows(config.EnvoyFilters, filter))
	got := w.get(1, encode.ListenerType)
	if want := []string{"added", "virtualInbound", "virtualOutbound"}; !slices.Equal(keysOf(got), want) {
		t.Fatalf("%v, want %v", keysOf(got), want)
	}
	for name, want := range map[string]string{"added": "s", "virtualInbound": "in", "virtualOutbound": ""} {
		var m listenerv3.Listener
		if err := proto.Unmarshal(got[name], &m); err != nil || m.StatPrefix != want {
			t.Errorf("%s: %q, want %q", name, m.StatPrefix, want)
		}
	}
	w.commit(&pb.TableRows{Table: config.EnvoyFilters, Deletes: []string{"default/f"}})
	if got := w.get(1, encode.ListenerType); !slices.Equal(keysOf(got), keysOf(plain)) {
		t.Errorf("without patches %v, want %v", keysOf(got), keysOf(plain))
	}
}

// TestServicesBehindPortsOfSidecars: patches know the cluster of a port that a Sidecar names by the
// service that names the port too, or by the Sidecar.
func TestServicesBehindPortsOfSidecars(t *testing.T) {
	for host, want := range map[string]bool{"own.default": false, "web.default.svc.cluster.local": true} {
		w := newWorld(t)
		w.commit(
			rows(config.Sidecars, spec(t, "default/own", &networking.Sidecar{}, "ingress: [{port: {number: 9999, protocol: HTTP, name: http}}]")),
			rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches: [{applyTo: CLUSTER, match: {context: SIDECAR_INBOUND, cluster: {service: `+host+`}}, patch: {operation: REMOVE}}]`)))
		w.attach(1, proxy(sidecarID, nil, nil))
		if got := w.get(1, encode.ClusterType)["inbound|9999||"] != nil; got != want {
			t.Errorf("%s: there is a cluster: %v", host, got)
		}
	}
}

// TestLabelsOfProxies: selectors know labels that follow from where a proxy runs, and those that
// were set for it beside a registry's.
func TestLabelsOfProxies(t *testing.T) {
	metadata := map[string]any{
		"CLUSTER_ID": "one", "NETWORK": "net", "NODE_NAME": "node-1",
		"LABELS": map[string]any{"app": "said", "said": "a"}, "STATIC_LABELS": map[string]any{"app": "static", "static": "a"},
	}
	for _, c := range []struct {
		labels           string
		known, otherwise bool // to a registry
	}{
		{"topology.istio.io/cluster: one", true, true},
		{"topology.istio.io/network: net", true, true},
		{"kubernetes.io/hostname: node-1", true, true},
		{"topology.kubernetes.io/zone: z", true, false},
		{"said: a", false, true},
		{"static: a", true, false},
		{"app: registry", true, false},
		{"app: static", false, false},
	} {
		w := newWorld(t)
		e := &sdk.Endpoint{Host: "own.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80, Address: "10.9.9.9", Port: 8080,
			Labels: map[string]string{"app": "registry"}, Locality: "r/z/s"}
		w.commit(rows(state.Endpoints, sdk.EndpointRow(e)), rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
workloadSelector: {labels: {`+c.labels+`}}
configPatches: [{applyTo: CLUSTER, patch: {operation: ADD, value: {name: added}}}]`)))
		w.attach(1, proxy(sidecarID, nil, metadata))
		w.attach(2, proxy(strings.Replace(sidecarID, "10.9.9.9", "10.9.9.8", 1), nil, metadata))
		for connection, want := range map[uint64]bool{1: c.known, 2: c.otherwise} {
			if got := w.get(connection, encode.ClusterType)["added"] != nil; got != want {
				t.Errorf("%s, proxy %d: %v", c.labels, connection, got)
			}
		}
	}
}
