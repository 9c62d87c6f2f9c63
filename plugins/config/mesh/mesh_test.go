package mesh

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMain(m *testing.M) { wait.Main(m) }

func read(t *testing.T, text string) *api.MeshConfig {
	t.Helper()
	m, faults := Read(MeshConfig, "", []byte(text), rules.Check)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return m.(*api.MeshConfig)
}

func TestNothingMeansTheDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}", "null", "defaultConfig: null\nextensionProviders: null\n"} {
		if got := read(t, text); !proto.Equal(got, Defaults()) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMergeOverDefaults(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       func(m *api.MeshConfig)
	}{
		{"scalars, explicitly false too", "enableTracing: false\naccessLogFile: /dev/stdout\n", func(m *api.MeshConfig) {
			m.EnableTracing = false
			m.AccessLogFile = "/dev/stdout"
		}},
		{"a list is replaced", `defaultServiceExportTo: ["."]`, func(m *api.MeshConfig) { m.DefaultServiceExportTo = []string{"."} }},
		{"a message is replaced", "localityLbSetting: {failover: []}", func(m *api.MeshConfig) { m.LocalityLbSetting.Enabled = nil }},
		{"the proxies' settings field by field", "defaultConfig: {drainDuration: 1s, proxyMetadata: {A: b}}", func(m *api.MeshConfig) {
			m.DefaultConfig.DrainDuration.Seconds = 1
			m.DefaultConfig.ProxyMetadata = map[string]string{"A": "b"}
		}},
		{"in the other spelling", "default_config: {proxy_admin_port: 1}", func(m *api.MeshConfig) { m.DefaultConfig.ProxyAdminPort = 1 }},
		{"default providers", "defaultProviders: {metrics: [prometheus]}", func(m *api.MeshConfig) {
			m.DefaultProviders.Metrics = []string{"prometheus"}
		}},
		{"providers by name", "extensionProviders: [{name: z, prometheus: {}}, {name: envoy, envoyFileAccessLog: {path: /x}}]", func(m *api.MeshConfig) {
			m.ExtensionProviders[2].GetEnvoyFileAccessLog().Path = "/x"
			m.ExtensionProviders = append(m.ExtensionProviders, &api.MeshConfig_ExtensionProvider{
				Name: "z", Provider: m.ExtensionProviders[0].Provider,
			})
		}},
		{"aliases are sorted", "trustDomainAliases: [b, a, b]", func(m *api.MeshConfig) { m.TrustDomainAliases = []string{"a", "b"} }},
		{"JSON", `{"trustDomain": "corp"}`, func(m *api.MeshConfig) { m.TrustDomain = "corp" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := Defaults()
			c.want(want)
			if got := read(t, c.text); !proto.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestMistakesHavePlaces(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"trustDomian: x\n", `1:1: MeshConfig: trustDomian: unknown field; did you mean "trustDomain"?`},
		{"a: 1\nb: 2\n", `1:1: MeshConfig: a: unknown field`},
		{"defaultConfig:\n  tracing: {samplin: 1}\n", `2:13: MeshConfig: defaultConfig.tracing.samplin: unknown field; did you mean "sampling"?`},
		{
			"outboundTrafficPolicy: {mode: REGISTRY}\n",
			`1:31: MeshConfig: outboundTrafficPolicy.mode: Unsupported value: "REGISTRY": expected one of REGISTRY_ONLY, ALLOW_ANY, ALLOW_ANY_DYNAMIC_DNS`,
		},
		{"proxyListenPort: 99999\n", `1:18: MeshConfig: proxyListenPort: invalid proxyListenPort: 99999`},
		{"connectTimeout: 0s\n", `1:17: MeshConfig: connectTimeout: duration must be greater than`},
		{"trustDomain: ''\n", `1:14: MeshConfig: trustDomain: `},
		{"a: [\n", "not YAML"},
		{"trustDomain: a\n---\ntrustDomain: b\n", "3:1: MeshConfig: a second document"},
		{"- a\n", "1:1: MeshConfig: expected a mapping, got a list"},
	} {
		_, faults := Read(MeshConfig, "", []byte(c.text), rules.Check)
		if len(faults) == 0 || !strings.Contains(faults[0].Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, faults, c.want)
		}
	}
}

func TestNetworks(t *testing.T) {
	m, faults := Read(MeshNetworks, "",
		[]byte("networks:\n  a:\n    endpoints: [{fromCidr: 10.0.0.0/8}]\n    gateways: [{address: 1.2.3.4, port: 15443}]\n"),
		rules.Check)
	if len(faults) > 0 || m.(*api.MeshNetworks).Networks["a"].Gateways[0].Port != 15443 {
		t.Errorf("got %v, %v", m, faults)
	}
	if _, faults := Read(MeshNetworks, "", []byte("networks: {a: {endpoint: []}}"), rules.Check); len(faults) != 1 ||
		faults[0].Error() != `:1:16: MeshNetworks: networks["a"].endpoint: unknown field; did you mean "endpoints"? (COX1003)` {
		t.Errorf("got %v", faults)
	}
}

// Files of the shared cases are right, and what they say is in the result.
func TestSharedMeshFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "parity/cases"), "*", "mesh.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no mesh.yaml: %v", err)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, faults := Read(MeshConfig, path, content, rules.Check)
		if len(faults) > 0 || proto.Equal(m, Defaults()) && len(strings.TrimSpace(string(content))) > 0 {
			t.Errorf("%s: %v", path, faults)
		}
	}
}

type bench struct {
	t   *testing.T
	dir string
	*plugintest.Harness
}

func newBench(t *testing.T) *bench { t.Helper(); return &bench{t: t, dir: t.TempDir()} }

func (b *bench) serve() {
	b.t.Helper()
	b.Harness = plugintest.Start(b.t, Plugin(), map[string]any{
		"meshConfig": filepath.Join(b.dir, "mesh.yaml"), "networksConfig": filepath.Join(b.dir, "networks.yaml"), "settle": "1ms",
	})
	b.WaitSynced()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	b.must(os.MkdirAll(filepath.Dir(path), 0o700))
	b.must(os.WriteFile(path, []byte(content), 0o600))
}

func (b *bench) rename(from, to string) {
	b.t.Helper()
	b.must(os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)))
}

func (b *bench) link(target, name string) {
	b.t.Helper()
	b.must(os.Symlink(target, filepath.Join(b.dir, name)))
}

func (b *bench) domain() string {
	row := b.Rows(state.Mesh)[state.Mesh]
	if row == nil {
		return ""
	}
	m, err := kinds.Decode[*api.MeshConfig](row)
	b.must(err)
	return m.TrustDomain
}

func (b *bench) waitDomain(want string) {
	b.t.Helper()
	b.WaitRows(state.Mesh, func(rows map[string]*sdk.Row) bool {
		m, err := kinds.Decode[*api.MeshConfig](rows[state.Mesh])
		return err == nil && m.TrustDomain == want
	})
}

func TestWithoutFiles(t *testing.T) {
	for _, config := range []any{nil, map[string]any{"meshConfig": os.DevNull, "networksConfig": "/no/such/file"}} {
		h := plugintest.Start(t, Plugin(), config)
		h.WaitSynced()
		m, err := kinds.Decode[*api.MeshConfig](h.Rows(state.Mesh)[state.Mesh])
		if err != nil || !proto.Equal(m, Defaults()) {
			t.Errorf("got %v, %v", m, err)
		}
		if row := h.Rows(state.Networks)[state.Networks]; row == nil || len(row.Payload) > 0 || row.Source != "defaults" {
			t.Errorf("networks: %v", row)
		}
	}
}

func TestFilesAreFollowed(t *testing.T) {
	b := newBench(t)
	b.write("mesh.yaml", "trustDomain: one\n")
	b.serve()
	if got := b.domain(); got != "one" {
		t.Fatalf("domain %s", got)
	}
	b.write("mesh.yaml", "trustDomain: two\n")
	b.waitDomain("two")
	b.write(".mesh.yaml.swp", "")
	b.rename("mesh.yaml", "mesh.yaml~")
	b.write("mesh.yaml", "trustDomain: three\n")
	b.waitDomain("three")
	b.write("networks.yaml", "networks: {a: {endpoints: [{fromRegistry: Kubernetes}]}}\n")
	b.WaitRows(state.Networks, func(rows map[string]*sdk.Row) bool {
		n, err := kinds.Decode[*api.MeshNetworks](rows[state.Networks])
		return err == nil && n.Networks["a"] != nil
	})
}

// What a file said stays when it is gone or empty, which is said, until it says something else.
func TestFileThatIsGone(t *testing.T) {
	for how, away := range map[string]func(path string) error{
		"is gone":               os.Remove,
		"is empty, and was not": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			b.write("mesh.yaml", "trustDomain: one\n")
			b.serve()
			b.must(away(filepath.Join(b.dir, "mesh.yaml")))
			place := filepath.Join(b.dir, "mesh.yaml") + ":1:1"
			b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 && rows[place] != nil })
			b.WaitLog(func(level sdk.Level, text string, fields map[string]string) bool {
				return level == sdk.Warn && text == "resource refused" && fields["file"] == filepath.Join(b.dir, "mesh.yaml") && fields["code"] == "COX1014" &&
					strings.Contains(fields["why"], "it "+how)
			})
			if got := b.domain(); got != "one" {
				t.Errorf("domain %s", got)
			}
			b.write("mesh.yaml", "{}\n")
			b.waitDomain("cluster.local")
			b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
		})
	}
}

func TestBadEditKeepsTheLastGood(t *testing.T) {
	b := newBench(t)
	b.write("mesh.yaml", "trustDomain: one\n")
	b.serve()
	b.write("mesh.yaml", "trustDomain: two\nenableTracin: true\n")
	place := filepath.Join(b.dir, "mesh.yaml") + ":2:1"
	b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 && rows[place] != nil })
	b.WaitLog(func(level sdk.Level, text string, fields map[string]string) bool {
		return level == sdk.Warn && text == "resource refused" && fields["line"] == "2" && fields["field"] == "enableTracin" && fields["code"] == "COX1003"
	})
	if got := b.domain(); got != "one" {
		t.Errorf("domain %s", got)
	}
	b.write("networks.yaml", "networks: {a: {}}\n")
	b.WaitRows(state.Networks, func(rows map[string]*sdk.Row) bool { return len(rows[state.Networks].Payload) > 0 })
	b.write("mesh.yaml", "trustDomain: two\n")
	b.waitDomain("two")
	b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

func TestBadFileAtStartMeansTheDefaults(t *testing.T) {
	b := newBench(t)
	b.write("mesh.yaml", "trustDomain: [\n")
	b.serve()
	if got := b.domain(); got != "cluster.local" {
		t.Errorf("domain %s", got)
	}
	if len(b.Rows(kinds.FaultTable)) != 1 {
		t.Errorf("faults: %v", b.Rows(kinds.FaultTable))
	}
	b.write("mesh.yaml", "trustDomain: one\n")
	b.waitDomain("one")
}

func TestKubernetesSwap(t *testing.T) {
	b := newBench(t)
	b.write("..1/mesh.yaml", "trustDomain: at-1\n")
	b.link("..1", "..data")
	b.link("..data/mesh.yaml", "mesh.yaml")
	b.serve()
	for _, version := range []string{"2", "3"} {
		b.write(".."+version+"/mesh.yaml", "trustDomain: at-"+version+"\n")
		b.link(".."+version, "..data_tmp")
		b.rename("..data_tmp", "..data")
		b.waitDomain("at-" + version)
	}
}

// A file that is empty for a moment is being written.
func TestEmptyForAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &setting{table: state.Mesh, kind: MeshConfig, check: rules.Check, layers: []*layer{fileLayer(path)}}
	start := time.Unix(1000, 0)
	write("trustDomain: one\n")
	s.look(start, time.Second)
	good := s.row
	write(" \x00\n")
	for after, want := range []int{0, 0, 1, 1} {
		s.look(start.Add(time.Second+time.Duration(after)*500*time.Millisecond), time.Second)
		if s.row.Source != good.Source || !bytes.Equal(s.row.Payload, good.Payload) || len(s.faults) != want {
			t.Errorf("after %d half seconds: %v, %v", after, s.row, s.faults)
		}
	}
	write("trustDomain: two\n")
	s.look(start.Add(time.Minute), time.Second)
	if bytes.Equal(s.row.Payload, good.Payload) || len(s.faults) != 0 {
		t.Errorf("it is written again: %v", s.faults)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ config, field, reason string }{
		{`{"mesh": "x"}`, "mesh", "known are"},
		{`{"meshConfig": "` + dir + `"}`, "meshConfig", "is a directory"},
		{`{"networksConfig": "` + dir + `"}`, "networksConfig", "is a directory"},
		{`{"settle": "0s"}`, "settle", "0s is less than 1ms"},
		{`{"configMap": "a/b"}`, "configMap", "is no name"},
		{`{"namespace": ""}`, "namespace", "is empty"},
		{`{"qps": 0}`, "qps", "is not more than 0"},
		{`{"configMap": "istio", "kubeconfig": "` + dir + `/none"}`, "kubeconfig", "no such file"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: got %s: %s", c.config, field, reason)
		}
	}
}

func TestDefaultsAreFresh(t *testing.T) {
	Defaults().DefaultServiceExportTo[0] = "changed"
	if !slices.Equal(Defaults().DefaultServiceExportTo, []string{"*"}) {
		t.Error("defaults are shared")
	}
}

// texts makes layers of texts; an empty one is not there.
func texts(all ...*string) (layers []*layer) {
	for i, text := range all {
		layers = append(layers, &layer{place: "abc"[i : i+1], read: func() ([]byte, error) {
			if *text == "" {
				return nil, nil
			}
			return []byte(*text), nil
		}})
	}
	return layers
}

// TestLayers: of two texts of a setting the later one wins, field by field where istiod does so,
// and each keeps its own last good version.
func TestLayers(t *testing.T) {
	shared, own := `
trustDomain: shared
ingressClass: shared
trustDomainAliases: [s]
extensionProviders: [{name: z, prometheus: {}}]
defaultConfig: {drainDuration: 1s, statusPort: 1, proxyMetadata: {A: s, B: s}, proxyHeaders: {server: {disabled: true}, requestId: {disabled: true}}}`, `
trustDomain: own
trustDomainAliases: [o]
extensionProviders: [{name: z, stackdriver: {}}]
defaultConfig: {statusPort: 2, proxyMetadata: {B: o}, proxyHeaders: {requestId: {}}}`
	s := &setting{table: state.Mesh, kind: MeshConfig, check: rules.Check, layers: texts(&shared, &own)}
	look := func(want string, faults ...string) {
		t.Helper()
		s.look(time.Unix(0, 0), 0)
		m, err := kinds.Decode[*api.MeshConfig](s.row)
		if err != nil {
			t.Fatal(err)
		}
		headers := m.DefaultConfig.ProxyHeaders
		got := fmt.Sprintln(m.TrustDomain, m.IngressClass, m.TrustDomainAliases, m.DefaultConfig.StatusPort, m.DefaultConfig.DrainDuration.AsDuration(),
			m.DefaultConfig.ProxyMetadata, headers.GetServer().GetDisabled().GetValue(),
			headers.GetRequestId().GetDisabled().GetValue(), len(m.ExtensionProviders), s.row.Source)
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		var places []string
		for _, f := range s.faults {
			places = append(places, f.Place())
		}
		if !slices.Equal(places, faults) {
			t.Errorf("faults %v, want %v", s.faults, faults)
		}
	}
	look("own shared [o s] 2 1s map[A:s B:o] true false 4 a:1:1, b:1:1")
	shared = "trustDomain: [\n"
	look("own shared [o s] 2 1s map[A:s B:o] true false 4 a:1:1, b:1:1", "a:1:1")
	shared, own = "ingressClass: other", "proxyListenPort: 99999"
	look("own other [o] 2 45s map[B:o] false false 4 a:1:1, b:1:1", "b:1:18")
	shared, own = "", "{}"
	look("cluster.local other [] 15020 45s map[] false false 3 a:1:1, b:1:1", "a:1:1")
}

// TestNetworksAreNotMerged: the first text that there is counts alone, as istiod has it.
func TestNetworksAreNotMerged(t *testing.T) {
	shared, own := "", "networks: {own: {}}"
	s := &setting{table: state.Networks, kind: MeshNetworks, check: rules.Check, layers: texts(&shared, &own)}
	for _, step := range []struct{ shared, want string }{
		{"", "own"}, {"networks: {shared: {}}", "shared"}, {"networks: [", "shared"},
		{"networks: {other: {}}", "other"},
	} {
		shared = step.shared
		s.look(time.Unix(0, 0), 0)
		m, err := kinds.Decode[*api.MeshNetworks](s.row)
		if err != nil || len(m.Networks) != 1 || m.Networks[step.want] == nil {
			t.Errorf("%+v: %v, %v", step, m, err)
		}
	}
}

// TestWhichLayers: a file, or the null device, takes the place of the ConfigMap, not of the shared
// one.
func TestWhichLayers(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{}`, "[] []"},
		{`{"configMap": "istio"}`, "[k8s://configmaps/istio-system/istio#mesh] [k8s://configmaps/istio-system/istio#meshNetworks]"},
		{`{"configMap": "istio", "namespace": "x", "meshConfig": "/a"}`, "[/a] [k8s://configmaps/x/istio#meshNetworks]"},
		{`{"configMap": "istio", "meshConfig": "/a", "networksConfig": "/dev/null"}`, "[/a] []"},
		{`{"configMap": "a", "sharedConfigMap": "b", "networksConfig": "/n"}`,
			"[k8s://configmaps/istio-system/b#mesh k8s://configmaps/istio-system/a#mesh] [k8s://configmaps/istio-system/b#meshNetworks /n]"},
	} {
		config, err := parse([]byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, s := range settingsOf(&config, &configMaps{namespace: config.Namespace}) {
			places := []string{}
			for _, l := range s.layers {
				places = append(places, l.place)
			}
			got = append(got, places)
		}
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != strings.Trim(c.want, "[]") {
			t.Errorf("%s: %s", c.config, text)
		}
	}
}

// TestLeanConfigMap: of a ConfigMap only what is read is kept.
func TestLeanConfigMap(t *testing.T) {
	sent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "istio", "namespace": "istio-system", "resourceVersion": "7"},
		"data":     map[string]any{"mesh": "a: b", "values": "much"},
	}}
	got, err := leanConfigMap(sent)
	c, ok := got.(*configMap)
	if err != nil || !ok || c.Name != "istio" || c.Namespace != "istio-system" || c.ResourceVersion != "7" ||
		!maps.Equal(c.data, map[string]string{"mesh": "a: b"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if again, err := leanConfigMap(c); again != got || err != nil {
		t.Error(again, err)
	}
}
