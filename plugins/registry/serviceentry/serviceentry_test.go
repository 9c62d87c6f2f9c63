package serviceentry

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// read makes rows of YAML documents, by table.
func read(t testing.TB, text string) []plugintest.Rows {
	t.Helper()
	by := map[string][]*sdk.Row{}
	for _, d := range kinds.Read("test.yaml", []byte(text)) {
		if d.Row == nil {
			t.Fatalf("test.yaml:%d: %v", d.Line, d.Faults)
		}
		by[d.Table] = append(by[d.Table], d.Row)
	}
	var out []plugintest.Rows
	for _, table := range slices.Sorted(maps.Keys(by)) {
		out = append(out, plugintest.Rows{Table: table, Upserts: by[table]})
	}
	return out
}

// start derives from YAML documents.
func start(t testing.TB, text string) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), nil)
	h.Commit(read(t, text)...)
	return h
}

// shown are rows as one line of JSON each, by key.
func shown(t testing.TB, h *plugintest.Harness, table string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, r := range h.Rows(table) {
		out[key] = show(t, table, r)
	}
	return out
}

func show(t testing.TB, table string, r *sdk.Row) string {
	t.Helper()
	var m any
	var err error
	switch table {
	case state.Services:
		m, err = sdk.ServiceOf(r)
	case state.Endpoints:
		m, err = sdk.EndpointOf(r)
	default:
		m, err = sdk.WorkloadOf(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const reviews = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: default, labels: {team: shop}, annotations: {networking.istio.io/traffic-distribution: PreferClose}}
spec:
  hosts: [reviews.default.svc.cluster.local]
  addresses: [10.96.1.1/32]
  ports: [{name: http, number: 9080, protocol: http, targetPort: 8080}]
  location: MESH_INTERNAL
  resolution: STATIC
  exportTo: ["."]
  subjectAltNames: [spiffe://a]
  endpoints:
  - {address: 10.10.1.1, serviceAccount: reviews, labels: {app: reviews}, locality: us/east, weight: 3}
  - {address: 10.10.1.2, ports: {http: 18080}, labels: {security.istio.io/tlsMode: istio, topology.istio.io/network: n2, istio-locality: us.west.a}}
  - {address: "unix:///run/app.sock", network: n3}
`

func TestServiceAndEndpoints(t *testing.T) {
	h := start(t, reviews)
	const host = "default/reviews.default.svc.cluster.local"
	want := map[string]string{host: `{"host":"reviews.default.svc.cluster.local","namespace":"default",` +
		`"name":"reviews.default.svc.cluster.local","addresses":["10.96.1.1"],` +
		`"ports":[{"number":9080,"name":"http","protocol":"HTTP","target":8080}],"export_to":["."],"subject_alt_names":["spiffe://a"],` +
		`"labels":{"team":"shop"},"registry":"External","traffic_distribution":"PreferClose",` +
		`"origin_table":"networking.istio.io/ServiceEntry","origin_key":"default/reviews"}`}
	if diff := cmp.Diff(want, shown(t, h, state.Services)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	common := `{"host":"reviews.default.svc.cluster.local","namespace":"default","port_name":"http","service_port":9080,`
	want = map[string]string{
		host + "/http/10.10.1.1:8080": common + `"address":"10.10.1.1","port":8080,"labels":{"app":"reviews"},"locality":"us/east",` +
			`"weight":3,"service_account":"reviews","tls_mode":"istio","cluster":"Kubernetes","workload":"reviews-0"}`,
		host + "/http/10.10.1.2:18080": common + `"address":"10.10.1.2","port":18080,"labels":{"istio-locality":"us.west.a",` +
			`"security.istio.io/tlsMode":"istio","topology.istio.io/network":"n2"},"locality":"us/west/a",` +
			`"tls_mode":"istio","cluster":"Kubernetes","workload":"reviews-1","index":1}`,
		host + "/http/[unix:/run/app.sock]:0": common + `"address":"unix:/run/app.sock","network":"n3","tls_mode":"disabled",` +
			`"cluster":"Kubernetes","workload":"reviews-2","index":2}`,
	}
	if diff := cmp.Diff(want, shown(t, h, state.Endpoints)); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if r := h.Rows(state.Services)[host]; !strings.HasPrefix(r.Source, "test.yaml:") {
		t.Errorf("source %q", r.Source)
	}
}

// se is a ServiceEntry of namespace default.
func se(name, spec string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: " + name + ", namespace: default}\nspec: " + spec + "\n"
}

func we(namespace, name, spec string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: " + spec + "\n"
}

// checked is a WorkloadEntry whose annotation reports whether its health is checked, with a
// condition that says it.
func checked(name, annotation, condition string) string {
	out := strings.Replace(we("default", name, "{address: "+name+".x, labels: {app: a}}"), "namespace", "annotations: {proxy.istio.io/health-checks-enabled: '"+
		annotation+"'}, namespace", 1)
	if condition != "" {
		out += "status: {conditions: [{type: Other, status: 'True'}, {type: Healthy, status: '" + condition + "', lastTransitionTime: 2026-01-02T03:04:05Z}]}\n"
	}
	return out
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, text          string
		services, endpoints []string
	}{
		{
			name:     "DNS without endpoints: the host itself, with the target port",
			text:     se("a", `{hosts: [a.x, b.x], ports: [{name: h, number: 80, protocol: HTTP, targetPort: 8000}], resolution: DNS}`),
			services: []string{"default/a.x", "default/b.x"}, endpoints: []string{"default/a.x/h/a.x:8000", "default/b.x/h/b.x:8000"},
		},
		{
			name:     "each endpoint counts once for each address",
			text:     se("a", `{hosts: [a.x], addresses: [10.0.0.1, 10.0.0.2], ports: [{name: t, number: 1, protocol: TCP}], resolution: DNS}`),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/t/a.x:1", "default/a.x/t/a.x:1#1"},
		},
		{
			name: "one endpoint for a port that has one at a time: the oldest entry's first",
			text: se("a", `{hosts: [a.x], addresses: [10.0.0.1, 10.0.0.2], ports: [{name: t, number: 1}], resolution: `+
				`DNS_ROUND_ROBIN, endpoints: [{address: b.x}, {address: a.x}]}`) +
				se("b", `{hosts: [a.x], ports: [{name: t, number: 1}, {name: u, number: 2}], resolution: DNS_ROUND_ROBIN}`),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/t/b.x:1", "default/a.x/u/a.x:2"},
		},
		{
			name:     "no endpoints where connections go where they were going",
			text:     se("a", `{hosts: ["*.x"], ports: [{name: t, number: 1, protocol: TLS}], resolution: NONE}`),
			services: []string{"default/*.x"},
		},
		{
			name:     "no endpoints where the proxy resolves",
			text:     se("a", `{hosts: ["*.x"], ports: [{name: t, number: 1, protocol: TLS}], resolution: DYNAMIC_DNS}`),
			services: []string{"default/*.x"},
		},
		{
			name: "workloads of the same namespace",
			text: se("a", `{hosts: [a.x], ports: [{name: h, number: 80, protocol: HTTP}], resolution: STATIC, workloadSelector: {labels: {app: a}}}`) +
				we("default", "w2", "{address: 10.1.0.2, labels: {app: a, v: b}, ports: {h: 81}}") +
				we("default", "w1", "{address: 10.1.0.1, labels: {app: a}}") +
				we("default", "w3", "{address: 10.1.0.3, labels: {app: b}}") + we("other", "w4", "{address: 10.1.0.4, labels: {app: a}}") +
				we("default", "named", "{address: vm.example, labels: {app: a}}") + we("default", "socket", "{address: 'unix:///a', labels: {app: a}}"),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/h/10.1.0.1:80", "default/a.x/h/10.1.0.2:81"},
		},
		{
			name: "of workloads whose health is checked those that are healthy",
			text: se("a", `{hosts: [a.x], ports: [{name: h, number: 80}], resolution: DNS, workloadSelector: {labels: {app: a}}}`) +
				checked("w1", "true", "True") + checked("w2", "true", "False") + checked("w3", "1", "") + checked("w4", "false", "False"),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/h/w1.x:80", "default/a.x/h/w4.x:80"},
		},
		{
			name: "a selector sees what the place implies",
			text: se("a", `{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, workloadSelector: {labels: {topology.kubernetes.io/zone: z}}}`) +
				we("default", "w1", "{address: 10.1.0.1, locality: r/z}"),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/h/10.1.0.1:80"},
		},
		{
			name:     "reachable through its network alone",
			text:     se("a", `{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, endpoints: [{network: "n"}]}`),
			services: []string{"default/a.x"}, endpoints: []string{"default/a.x/h/:80"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, c.text)
			if got := slices.Sorted(maps.Keys(h.Rows(state.Services))); !slices.Equal(got, c.services) {
				t.Errorf("services %q, want %q", got, c.services)
			}
			if got := slices.Sorted(maps.Keys(h.Rows(state.Endpoints))); !slices.Equal(got, c.endpoints) {
				t.Errorf("endpoints %q, want %q", got, c.endpoints)
			}
		})
	}
}

func TestEntriesOfOneHost(t *testing.T) {
	h := start(t, se("b-young", `{hosts: [a.x], addresses: [10.0.0.2], ports: [{name: p1, number: 1}, {name: p2, number: 2}], resolution: DNS}`)+
		se("a-old", `{hosts: [a.x], addresses: [10.0.0.1], ports: [{name: p1, number: 1, protocol: TCP}], resolution: DNS}`)+
		se("c-other", `{hosts: [a.x], ports: [{name: p3, number: 3}], resolution: STATIC, endpoints: [{address: 10.1.1.1}]}`))
	s, err := sdk.ServiceOf(h.Rows(state.Services)["default/a.x"])
	if err != nil {
		t.Fatal(err)
	}
	if s.OriginKey != "default/a-old" || !slices.Equal(s.Addresses, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("origin %s, addresses %q", s.OriginKey, s.Addresses)
	}
	if len(s.Ports) != 2 || s.Ports[0].Protocol != "TCP" || s.Ports[1].Name != "p2" {
		t.Errorf("ports %v", s.Ports)
	}
	want := []string{"default/a.x/p1/a.x:1", "default/a.x/p1/a.x:1#1", "default/a.x/p2/a.x:2", "default/a.x/p3/10.1.1.1:3"}
	if got := slices.Sorted(maps.Keys(h.Rows(state.Endpoints))); !slices.Equal(got, want) {
		t.Errorf("endpoints %q, want %q", got, want)
	}
}

func TestAllocatedAddresses(t *testing.T) {
	text := se("a", `{hosts: [a.x, b.x], ports: [{name: p, number: 1}], resolution: DNS}`) +
		"status: {addresses: [{value: 240.240.0.1, host: a.x}, {value: 240.240.0.2, host: b.x}]}\n"
	h := start(t, text)
	s, err := sdk.ServiceOf(h.Rows(state.Services)["default/b.x"])
	if err != nil || !slices.Equal(s.AutoAddresses, []string{"240.240.0.2"}) || len(s.Addresses) > 0 {
		t.Errorf("%v, %v", s, err)
	}
}

// What telemetry calls a workload is its group, its label or its own name, and the port that a
// client dials is what the entry says, even if it is the number.
func TestNamesAndTargets(t *testing.T) {
	h := start(t, se("a", `{hosts: [a.x], ports: [{name: h, number: 80, targetPort: 80}], resolution: NONE, workloadSelector: {labels: {app: a}}}`)+`
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w1, namespace: default, annotations: {istio.io/autoRegistrationGroup: group}, labels: {service.istio.io/workload-name: label}}
spec: {address: 10.1.0.1, labels: {app: a}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w2, namespace: default, labels: {service.istio.io/workload-name: label}}
spec: {address: 10.1.0.2, labels: {app: a}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: w3, namespace: default}
spec: {address: 10.1.0.3, labels: {app: a, service.istio.io/workload-name: of-spec}}
`)
	for at, want := range map[string]string{"1": "group", "2": "label", "3": "w3"} {
		e, err := sdk.EndpointOf(h.Rows(state.Endpoints)["default/a.x/h/10.1.0."+at+":80"])
		if err != nil || e.Workload != want {
			t.Errorf("%v, %v; want %s", e, err, want)
		}
	}
	s, err := sdk.ServiceOf(h.Rows(state.Services)["default/a.x"])
	if err != nil || s.Ports[0].Target != 80 {
		t.Error(s, err)
	}
}

func TestWorkloadRows(t *testing.T) {
	h := start(t, `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm, namespace: vms, labels: {app: meta}}
spec: {address: 10.1.0.1, labels: {app: spec, version: v1}, serviceAccount: sa, ports: {h: 81}, weight: 2, network: "n", locality: r/z}
`)
	want := map[string]string{"vms/vm": `{"name":"vm","namespace":"vms","addresses":["10.1.0.1"],"labels":{"app":"meta","version":"v1"},` +
		`"service_account":"sa","network":"n","locality":"r/z","weight":2,"ports":{"h":81},"cluster":"Kubernetes","tls_mode":"istio","ready":true}`}
	if diff := cmp.Diff(want, shown(t, h, state.Workloads)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.Update(kinds.WorkloadEntry, nil, "vms/vm")
	if got := h.Rows(state.Workloads); len(got) > 0 {
		t.Errorf("still there: %v", got)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"no host":             {`{ports: [{name: h, number: 80}], resolution: NONE}`, "hosts: at least one"},
		"bad host":            {`{hosts: ["*"], ports: [{name: h, number: 80}], resolution: NONE}`, "hosts[0]"},
		"bad address":         {`{hosts: [a.x], addresses: [10.0.0.300], ports: [{name: h, number: 80}]}`, `addresses[0]: "10.0.0.300"`},
		"port 0":              {`{hosts: [a.x], ports: [{name: h}]}`, "ports[0].number"},
		"port name twice":     {`{hosts: [a.x], ports: [{name: h, number: 80}, {name: h, number: 81}]}`, "ports[1].name"},
		"port number twice":   {`{hosts: [a.x], ports: [{name: h, number: 80}, {name: g, number: 80}]}`, "ports[1].number"},
		"endpoints with NONE": {`{hosts: [a.x], ports: [{name: h, number: 80}], endpoints: [{address: 1.1.1.1}]}`, "resolution NONE"},
		"name with STATIC":    {`{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, endpoints: [{address: b.x}]}`, "endpoints[0].address"},
		"socket with DNS":     {`{hosts: [a.x], ports: [{name: h, number: 80}], resolution: DNS, endpoints: [{address: "unix:///a"}]}`, "Unix sockets"},
		"no address":          {`{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, endpoints: [{}]}`, "endpoints[0]: address: needed"},
		"unknown port": {
			`{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, endpoints: [{address: 1.1.1.1, ports: {g: 1}}]}`,
			`no port "g"`,
		},
		"wildcard by DNS": {`{hosts: ["*.x"], ports: [{name: h, number: 80}], resolution: DNS}`, "can't be resolved"},
		"selector, endpoints": {
			`{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, endpoints: [{address: 1.1.1.1}], workloadSelector: {labels: {a: b}}}`,
			"exclude each other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := se("a", `{hosts: [good.x], ports: [{name: h, number: 80}], resolution: DNS}`)
			h := start(t, good+se("b", `{hosts: [b.x], ports: [{name: h, number: 80}], resolution: DNS}`))
			before := h.Rows(state.Services)
			h.Commit(read(t, se("a", c.spec))...)
			faults := h.Faults()
			if len(faults) != 1 || !strings.Contains(faults[0].Reason, c.want) || faults[0].What != "ServiceEntry default/a" {
				t.Fatalf("faults %v, want one of %q", faults, c.want)
			}
			if r := faults[0].Rows; len(r) != 1 || r[0].Table != kinds.ServiceEntry || r[0].Key != "default/a" {
				t.Errorf("rows at fault: %v", r)
			}
			if got := h.Rows(state.Services); !maps.Equal(got, before) {
				t.Errorf("the last good rows did not stay: %v", got)
			}
			h.Commit(read(t, good)...)
			if again := h.Faults(); len(again) != 1 {
				t.Errorf("faults after the repair: %v", again[1:])
			}
		})
	}
}

func TestUnreadableRow(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	h.Commit(plugintest.Rows{Table: kinds.ServiceEntry, Upserts: []*sdk.Row{{Key: "default/a", Payload: []byte{0xff}}}},
		plugintest.Rows{Table: kinds.WorkloadEntry, Upserts: []*sdk.Row{{Key: "default/w"}}})
	if faults := h.Faults(); len(faults) != 2 {
		t.Errorf("faults %v", faults)
	}
}

func TestUnchangedRowsAreNotPublished(t *testing.T) {
	text := se("a", `{hosts: [a.x], ports: [{name: h, number: 80}], resolution: STATIC, workloadSelector: {labels: {app: a}}}`) +
		we("default", "w2", "{address: 10.1.0.2, labels: {app: a}}") + we("default", "w3", "{address: 10.1.0.3, labels: {app: a}}")
	h := start(t, text+se("b", `{hosts: [b.x], ports: [{name: h, number: 80}], resolution: DNS}`))
	before := [2]map[string]*pb.Row{h.Rows(state.Services), h.Rows(state.Endpoints)}
	h.Commit(read(t, we("default", "w1", "{address: 10.1.0.1, labels: {app: a}}"))...)
	for i, table := range []string{state.Services, state.Endpoints} {
		after := h.Rows(table)
		for key, r := range before[i] {
			if after[key] != r {
				t.Errorf("%s %s was published again", table, key)
			}
		}
	}
	if h.Rows(state.Endpoints)["default/a.x/h/10.1.0.1:80"] == nil {
		t.Error("the new workload has no endpoint")
	}
}

func TestConfig(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"cluster": "east"}`)
	h.Commit(read(t, we("a", "w", "{address: 10.1.0.1}"))...)
	w, err := sdk.WorkloadOf(h.Rows(state.Workloads)["a/w"])
	if err != nil || w.Cluster != "east" {
		t.Errorf("%v, %v", w, err)
	}
	if field, reason := plugintest.Refusal(t, Plugin(), `{"clutser": "east"}`); field != "clutser" || !strings.Contains(reason, "did you mean") {
		t.Errorf("%s: %q", field, reason)
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	h := plugintest.Start(t, Plugin(), config)
	h.Commit(read(t, blocks[1].Text)...)
	var got strings.Builder
	for _, table := range []string{state.Services, state.Endpoints, state.Workloads} {
		for _, key := range slices.Sorted(maps.Keys(h.Rows(table))) {
			got.WriteString(table + " " + key + "\n")
		}
	}
	if diff := cmp.Diff(blocks[2].Text, got.String()); diff != "" {
		t.Errorf("(-README +got):\n%s", diff)
	}
}
