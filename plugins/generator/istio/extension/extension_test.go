package extension

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	wasmhttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	rbactcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	wasmtcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/wasm/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// traffic reads a TrafficExtension as YAML readers hand it on.
func traffic(t *testing.T, name, spec string) *Extension {
	t.Helper()
	e, err := New(parsed(t, name, &extensions.TrafficExtension{}, spec, config.ParseTrafficExtension))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func plugin(t *testing.T, name, spec string) *Extension {
	t.Helper()
	e, err := New(parsed(t, name, &extensions.WasmPlugin{}, spec, config.ParseWasmPlugin))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func parsed(t *testing.T, name string, m proto.Message, spec string, parse func(*pb.Row) (*config.Extension, error)) *config.Extension {
	t.Helper()
	if err := protojson.Unmarshal([]byte(spec), m); err != nil {
		t.Fatal(err)
	}
	payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	e, err := parse(&pb.Row{Key: "ns/" + name, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func settings(t *testing.T, e *Extension) *wasm.PluginConfig { return read(t, e.Config) }

func read(t *testing.T, config proto.Message) *wasm.PluginConfig {
	t.Helper()
	m, err := config.(*core.TypedExtensionConfig).TypedConfig.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	switch x := m.(type) {
	case *wasmhttp.Wasm:
		return x.Config
	case *wasmtcp.Wasm:
		return x.Config
	}
	t.Fatalf("%T", m)
	return nil
}

func TestWasm(t *testing.T) {
	const sum = "7c5a0a1f0d0e6a3f0b3f4e6d1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
	for _, c := range []struct{ name, spec, want string }{
		{"a location without scheme is an image", `{"url":"registry.example/p:v1"}`,
			`{"uri":"oci://registry.example/p:v1","policy":"FAIL_CLOSED","env":{}}`},
		{"oci", `{"url":"oci://registry.example/p:v1","imagePullPolicy":"Always"}`,
			`{"uri":"oci://registry.example/p:v1","policy":"FAIL_CLOSED","env":{"ISTIO_META_WASM_IMAGE_PULL_POLICY":"Always"}}`},
		{"https with a checksum", `{"url":"https://f.example/p.wasm","sha256":"` + sum + `","failStrategy":"FAIL_OPEN"}`,
			`{"uri":"https://f.example/p.wasm","sha":"` + sum + `","policy":"FAIL_OPEN","env":{}}`},
		{"a location is written as URIs are", `{"url":"HTTPS://f.example/a b.wasm"}`,
			`{"uri":"https://f.example/a%20b.wasm","policy":"FAIL_CLOSED","env":{}}`},
		{"file", `{"url":"file:///opt/p.wasm","failStrategy":"FAIL_RELOAD"}`,
			`{"file":"/opt/p.wasm","policy":"FAIL_RELOAD","env":{}}`},
		{"environment, root id and settings", `{"url":"http://f/p","pluginName":"root","pluginConfig":{"b":[1,true],"a":"<x>"},
			"vmConfig":{"env":[{"name":"A","value":"1"},{"name":"HOST_A","valueFrom":"HOST"},{"name":"E"}]}}`,
			`{"uri":"http://f/p","policy":"FAIL_CLOSED","env":{"A":"1","E":""},"host":["HOST_A"],"root":"root","config":"{\"a\":\"\\u003cx\\u003e\",\"b\":[1,true]}"}`},
		{"an agent learns that there is a secret", `{"url":"oci://r/p","imagePullSecret":"s"}`,
			`{"uri":"oci://r/p","policy":"FAIL_CLOSED","env":{"ISTIO_META_WASM_IMAGE_PULL_SECRET":""}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := settings(t, plugin(t, "p", c.spec))
			vm := p.GetVmConfig()
			env := map[string]any{}
			for k, v := range vm.EnvironmentVariables.KeyValues {
				if k != resource {
					env[k] = v
				}
			}
			got := map[string]any{"policy": p.FailurePolicy.String(), "env": env}
			for k, v := range map[string]string{
				"uri": vm.Code.GetRemote().GetHttpUri().GetUri(), "sha": vm.Code.GetRemote().GetSha256(),
				"file": vm.Code.GetLocal().GetFilename(), "root": p.RootId,
			} {
				if v != "" {
					got[k] = v
				}
			}
			if keys := vm.EnvironmentVariables.HostEnvKeys; len(keys) > 0 {
				got["host"] = []any{keys[0]}
			}
			if m, err := p.Configuration.UnmarshalNew(); err == nil {
				got["config"] = m.(interface{ GetValue() string }).GetValue()
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// Envoys without an agent refuse code without a checksum.
func TestChecksumsWithoutAgent(t *testing.T) {
	for _, spec := range []string{`{"url":"oci://r/p"}`, `{"url":"oci://r/p","type":"NETWORK"}`} {
		e := plugin(t, "p", spec)
		if own, direct := settings(t, e).GetVmConfig().Code.GetRemote().Sha256, read(t, e.Direct).GetVmConfig().Code.GetRemote().Sha256; own != "" || direct != unknownSum {
			t.Errorf("%q and %q", own, direct)
		}
	}
	if e := plugin(t, "p", `{"url":"file:///p"}`); e.Direct != e.Config {
		t.Error("files have none")
	}
}

// TestHolding: an Envoy without an agent has the module in its configuration, with what is said of
// it now or, until the module of another URL is there, with what was said when it was fetched.
func TestHolding(t *testing.T) {
	code := []byte("\x00asm and so on")
	there := func(spec string) modules.Module {
		t.Helper()
		had := parsed(t, "p", &extensions.WasmPlugin{}, spec, config.ParseWasmPlugin).Spec.GetWasm()
		payload, err := proto.Marshal(had)
		if err != nil {
			t.Fatal(err)
		}
		return modules.Module{SHA256: modules.Sum(code), Spec: payload}
	}
	for _, c := range []struct{ name, had, now, want string }{
		{"the same", `{"url":"oci://r/p:1","pluginName":"a"}`, `{"url":"oci://r/p:1","pluginName":"a","imagePullPolicy":"Always"}`, "a"},
		{"it is told something else", `{"url":"oci://r/p:1","pluginName":"a"}`, `{"url":"oci://r/p:1","pluginName":"b"}`, "b"},
		{"another one is awaited", `{"url":"oci://r/p:1","pluginName":"a"}`, `{"url":"oci://r/p:2","pluginName":"b"}`, "a"},
		{"another digest is awaited", `{"url":"oci://r/p:1","pluginName":"a"}`, `{"url":"oci://r/p:1","sha256":"00","pluginName":"b"}`, "a"},
		{"another kind of filter", `{"url":"oci://r/p:1"}`, `{"url":"oci://r/p:1","type":"NETWORK"}`, ""},
	} {
		got := plugin(t, "p", c.now).Holding(there(c.had), code)
		if c.want == "" {
			if got != nil {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		p := read(t, got)
		if p.RootId != c.want || string(p.GetVmConfig().Code.GetLocal().GetInlineBytes()) != string(code) {
			t.Errorf("%s: %v", c.name, p)
		}
		if env := p.GetVmConfig().EnvironmentVariables.GetKeyValues(); len(env) > 0 {
			t.Errorf("%s: it finds %v, which is for agents", c.name, env)
		}
	}
	if e := traffic(t, "a", `{"lua":{"inlineCode":"x"}}`); e.Holding(there(`{"url":"x"}`), code) != nil {
		t.Error("a script has no module")
	}
	if a, b := plugin(t, "a", `{"url":"x"}`).Module(), traffic(t, "a", `{"wasm":{"url":"x"}}`).Module(); a != "WasmPlugin/ns/a" || b != "TrafficExtension/ns/a" {
		t.Errorf("keys %s and %s", a, b)
	}
}

func TestAgentsLearnThatAPluginChanged(t *testing.T) {
	version := func(spec string) string {
		return settings(t, plugin(t, "p", spec)).GetVmConfig().EnvironmentVariables.KeyValues[resource]
	}
	a, b := version(`{"url":"oci://r/p:1"}`), version(`{"url":"oci://r/p:2"}`)
	if a == "" || a == b || a != version(`{"url":"oci://r/p:1"}`) {
		t.Errorf("versions %q and %q", a, b)
	}
}

func TestNames(t *testing.T) {
	for want, e := range map[string]*Extension{
		"extensions.istio.io/trafficextension/ns.a":                             traffic(t, "a", `{"lua":{"inlineCode":"x"}}`),
		"extensions.istio.io/trafficextension/ns.a~istio-translated-wasmplugin": plugin(t, "a", `{"url":"x"}`),
	} {
		if e.Name != want {
			t.Errorf("%s, want %s", e.Name, want)
		}
	}
	if _, err := New(parsed(t, "none", &extensions.TrafficExtension{}, `{}`, config.ParseTrafficExtension)); err == nil {
		t.Error("an extension without anything to run is no extension")
	}
}

// TestList: which filters stand where, and in which order.
func TestList(t *testing.T) {
	lua := `"lua":{"inlineCode":"x"}`
	all := []*Extension{
		traffic(t, "old", `{`+lua+`}`),
		traffic(t, "lowest", `{"priority":-2147483648,`+lua+`}`),
		traffic(t, "young", `{`+lua+`}`),
		traffic(t, "low", `{"priority":-5,`+lua+`}`),
		traffic(t, "high", `{"priority":5,`+lua+`}`),
		traffic(t, "authn", `{"phase":"AUTHN",`+lua+`}`),
		traffic(t, "authz", `{"phase":"AUTHZ","match":[{"mode":"SERVER"}],`+lua+`}`),
		traffic(t, "stats", `{"phase":"STATS","match":[{"mode":"CLIENT"}],`+lua+`}`),
		traffic(t, "at80", `{"priority":9,"match":[{"ports":[{"number":80},{"number":81}]}],`+lua+`}`),
		traffic(t, "either", `{"priority":8,"match":[{"mode":"SERVER","ports":[{"number":80}]},{"mode":"CLIENT"}],`+lua+`}`),
		traffic(t, "wasm", `{"priority":7,"wasm":{"url":"x"}}`),
		traffic(t, "network", `{"priority":7,"wasm":{"url":"x","type":"NETWORK"}}`),
	}
	everywhere := []Phase{AuthN, AuthZ, Stats, Last}
	for _, c := range []struct {
		name    string
		server  bool
		port    uint32
		phases  []Phase
		request string
		network string
	}{
		{"server, port 80", true, 80, everywhere, "authn authz at80 either wasm high low old lowest young", "network"},
		{"server, any port", true, 0, everywhere, "authn authz wasm high low old lowest young", "network"},
		{"client, port 81", false, 81, everywhere, "authn stats at80 either wasm high low old lowest young", "network"},
		{"before policies", true, 80, []Phase{AuthN}, "authn", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewList(all, c.server, false)
			var requests, connections []string
			for _, f := range l.Requests(c.port, c.phases...) {
				requests = append(requests, f.Name[strings.LastIndex(f.Name, ".")+1:])
			}
			for _, f := range l.Connections(c.port, c.phases...) {
				connections = append(connections, f.Name[strings.LastIndex(f.Name, ".")+1:])
			}
			if got := strings.Join(requests, " "); got != c.request {
				t.Errorf("requests %s, want %s", got, c.request)
			}
			if got := strings.Join(connections, " "); got != c.network {
				t.Errorf("connections %s, want %s", got, c.network)
			}
		})
	}
}

// TestAlone: an Envoy without an agent falls back to a filter that lets all pass, where the code is
// to fail open, and to nothing else. One with an agent is told what its agent puts there.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		spec string
		want proto.Message
	}{
		{`{"url":"file:///m"}`, nil},
		{`{"url":"file:///m","failStrategy":"FAIL_RELOAD"}`, nil},
		{`{"url":"file:///m","failStrategy":"FAIL_OPEN"}`, &rbachttp.RBAC{}},
		{`{"url":"file:///m","failStrategy":"FAIL_OPEN","type":"NETWORK"}`, &rbactcp.RBAC{StatPrefix: "extension."}},
	} {
		all := []*Extension{plugin(t, "p", c.spec)}
		for _, alone := range []bool{false, true} {
			l := NewList(all, true, alone)
			var sources []*core.ExtensionConfigSource
			for _, f := range l.Requests(80, Last) {
				sources = append(sources, f.GetConfigDiscovery())
			}
			for _, f := range l.Connections(80, Last) {
				sources = append(sources, f.GetConfigDiscovery())
			}
			if len(sources) != 1 {
				t.Fatalf("%s: %d filters", c.spec, len(sources))
			}
			got := sources[0].DefaultConfig
			if !alone || c.want == nil {
				if got != nil {
					t.Errorf("%s, alone %t: it falls back to %v", c.spec, alone, got)
				}
				continue
			}
			m, err := got.UnmarshalNew()
			if err != nil || !proto.Equal(m, c.want) {
				t.Errorf("%s: it falls back to %v (%v), want %v", c.spec, m, err, c.want)
			}
		}
	}
}
