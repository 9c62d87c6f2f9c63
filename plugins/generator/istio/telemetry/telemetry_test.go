package telemetry

import (
	"slices"
	"strconv"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"istio.io/api/envoy/extensions/stats"
	meshv1 "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"
)

func file(name string) *meshv1.MeshConfig_ExtensionProvider {
	return &meshv1.MeshConfig_ExtensionProvider{Name: name, Provider: &meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLog{
		EnvoyFileAccessLog: &meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{Path: "/" + name},
	}}
}

func logs(mode api.WorkloadMode, off bool, providers ...string) *api.AccessLogging {
	out := &api.AccessLogging{Match: &api.AccessLogging_LogSelector{Mode: mode}}
	for _, p := range providers {
		out.Providers = append(out.Providers, &api.ProviderRef{Name: p})
	}
	if off {
		out.Disabled = wrapperspb.Bool(true)
	}
	return out
}

func TestLogs(t *testing.T) {
	const both, client = api.WorkloadMode_CLIENT_AND_SERVER, api.WorkloadMode_CLIENT
	none := func(string) (string, bool) { return "", false }
	for _, c := range []struct {
		name     string
		file     string
		defaults []string
		levels   [][]*api.AccessLogging
		side     Side
		want     int
	}{
		{"nothing", "", nil, nil, Outbound, 0},
		{"the mesh's file", "/dev/stdout", nil, nil, Outbound, 1},
		{"default providers instead of the file", "/dev/stdout", []string{"a", "b"}, nil, Outbound, 2},
		{"a provider instead of the defaults", "", []string{"a", "b"}, [][]*api.AccessLogging{{logs(both, false, "a")}}, Outbound, 1},
		{"the namespace's instead of the mesh's", "", nil,
			[][]*api.AccessLogging{{logs(both, false, "a", "b")}, {logs(both, false, "c")}}, Inbound, 1},
		{"another side", "", nil, [][]*api.AccessLogging{{logs(client, false, "a")}}, Inbound, 0},
		{"switched off", "/dev/stdout", nil, [][]*api.AccessLogging{{logs(both, false, "a")}, {logs(both, true)}}, Outbound, 0},
		{"a provider that isn't there", "/dev/stdout", nil, [][]*api.AccessLogging{{logs(both, false, "z")}}, Outbound, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Find: none, Side: c.side, Mesh: &meshv1.MeshConfig{
				AccessLogFile:      c.file,
				ExtensionProviders: []*meshv1.MeshConfig_ExtensionProvider{file("a"), file("b"), file("c")},
				DefaultProviders:   &meshv1.MeshConfig_DefaultProviders{AccessLogging: c.defaults},
			}}
			for _, l := range c.levels {
				in.Resources = append(in.Resources, &api.Telemetry{AccessLogging: l})
			}
			r := Build(in)
			for _, got := range [][]*accesslogv3.AccessLog{r.Requests, r.Connections, r.Refused} {
				if len(got) != c.want {
					t.Errorf("%d logs, want %d", len(got), c.want)
				}
			}
		})
	}
}

func TestStats(t *testing.T) {
	prometheus := &meshv1.MeshConfig_ExtensionProvider{
		Name: "prometheus", Provider: &meshv1.MeshConfig_ExtensionProvider_Prometheus{},
	}
	all := &api.MetricsOverrides{Disabled: wrapperspb.Bool(true)}
	one := &api.MetricsOverrides{
		Match: &api.MetricSelector{
			Mode:        api.WorkloadMode_SERVER,
			MetricMatch: &api.MetricSelector_Metric{Metric: api.MetricSelector_REQUEST_COUNT},
		},
		TagOverrides: map[string]*api.MetricsOverrides_TagOverride{
			"b": {Operation: api.MetricsOverrides_TagOverride_REMOVE}, "a": {Value: "request.path"},
		},
	}
	in := Input{Side: Inbound, Mesh: &meshv1.MeshConfig{
		ExtensionProviders: []*meshv1.MeshConfig_ExtensionProvider{prometheus},
		DefaultProviders:   &meshv1.MeshConfig_DefaultProviders{Metrics: []string{"Prometheus"}},
	}}
	in.Resources = []*api.Telemetry{
		{Metrics: []*api.Metrics{{Overrides: []*api.MetricsOverrides{all}}}},
		{Metrics: []*api.Metrics{{Overrides: []*api.MetricsOverrides{one}}}},
	}
	got := in.stats()
	if len(got) != 1 {
		t.Fatalf("%d filters, want one: a namespace's override brings metrics back", len(got))
	}
	var config stats.PluginConfig
	if err := proto.Unmarshal(got[0].Value, &config); err != nil {
		t.Fatal(err)
	}
	m := config.Metrics[0]
	if m.Name != "requests_total" || m.Dimensions["a"] != "request.path" || !slices.Equal(m.TagsToRemove, []string{"b"}) {
		t.Errorf("%v", m)
	}
	if in.Side = Outbound; len(in.stats()) != 0 {
		t.Error("metrics of the other side")
	}
}

func TestTracing(t *testing.T) {
	zipkin := &meshv1.MeshConfig_ExtensionProvider{Name: "zipkin", Provider: &meshv1.MeshConfig_ExtensionProvider_Zipkin{
		Zipkin: &meshv1.MeshConfig_ExtensionProvider_ZipkinTracingProvider{Service: "zipkin", Port: 9411},
	}}
	use := &api.Tracing{Providers: []*api.ProviderRef{{Name: "zipkin"}}}
	off := &api.Tracing{Match: &api.Tracing_TracingSelector{Mode: api.WorkloadMode_SERVER}, DisableSpanReporting: wrapperspb.Bool(true)}
	for _, c := range []struct {
		name     string
		enabled  bool
		tracing  []*api.Tracing
		known    bool
		side     Side
		want     bool
		provider bool
	}{
		{"off", false, nil, true, Outbound, false, false},
		{"the bootstrap's", true, nil, true, Outbound, true, false},
		{"a provider", false, []*api.Tracing{use}, true, Outbound, true, true},
		{"a provider whose service is unknown", true, []*api.Tracing{use}, false, Outbound, false, false},
		{"switched off for a side", true, []*api.Tracing{use, off}, true, Inbound, false, false},
		{"and not for the other", true, []*api.Tracing{use, off}, true, Gateway, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Build(Input{
				Resources: []*api.Telemetry{{Tracing: c.tracing}},
				Side:      c.side,
				Mesh: &meshv1.MeshConfig{
					EnableTracing: c.enabled, ExtensionProviders: []*meshv1.MeshConfig_ExtensionProvider{zipkin},
				},
				Find: func(service string) (string, bool) { return service, c.known },
			}).Tracing
			if (got != nil) != c.want || c.want && (got.Provider != nil) != c.provider {
				t.Errorf("%+v", got)
			}
		})
	}
}

// OpenTelemetry's conventions need the environment's detector: agents put there what they ask for.
func TestConventions(t *testing.T) {
	for enrichment, want := range map[string]int{"ISTIO_CANONICAL": 0, "OTEL_SEMANTIC_CONVENTIONS": 1} {
		p := &meshv1.MeshConfig_ExtensionProvider{}
		if err := protojson.Unmarshal([]byte(`{"name": "o", "opentelemetry": {"service": "s", "port": 1, "serviceAttributeEnrichment": "`+enrichment+`"}}`),
			p); err != nil {
			t.Fatal(err)
		}
		tracing := &Tracing{Provider: p, At: Target{Cluster: "c"}}
		tracer, _ := tracing.Tracer("x")
		var got tracev3.OpenTelemetryConfig
		if err := tracer.GetTypedConfig().UnmarshalTo(&got); err != nil {
			t.Fatal(err)
		}
		if len(got.ResourceDetectors) != want || tracing.ByConvention() != (want == 1) || got.ServiceName != "x" {
			t.Errorf("%s: %v", enrichment, &got)
		}
	}
}

// TestConstants: Zipkin is asked for an answer within 5 s where the provider doesn't say.
func TestConstants(t *testing.T) {
	tracing := &Tracing{At: Target{Cluster: "c", Host: "h"}, Provider: &meshv1.MeshConfig_ExtensionProvider{
		Provider: &meshv1.MeshConfig_ExtensionProvider_Zipkin{Zipkin: &meshv1.MeshConfig_ExtensionProvider_ZipkinTracingProvider{}},
	}}
	tracer, _ := tracing.Tracer("")
	var got tracev3.ZipkinConfig
	if err := tracer.GetTypedConfig().UnmarshalTo(&got); err != nil {
		t.Fatal(err)
	}
	if wait := got.GetCollectorService().GetHttpUri().GetTimeout().AsDuration(); wait.String() != "5s" {
		t.Error(wait)
	}
}

// Logs are in the order of their providers, however resources spell them.
func TestOrderOfLogs(t *testing.T) {
	r := Build(Input{Mesh: &meshv1.MeshConfig{
		ExtensionProviders: []*meshv1.MeshConfig_ExtensionProvider{file("b"), file("a")},
		DefaultProviders:   &meshv1.MeshConfig_DefaultProviders{AccessLogging: []string{"B", "a"}},
	}})
	var got []string
	for _, l := range r.Requests {
		got = append(got, readFile(t, l).Path)
	}
	if !slices.Equal(got, []string{"/a", "/b"}) {
		t.Error(got)
	}
}

func readFile(t *testing.T, l *accesslogv3.AccessLog) *filev3.FileAccessLog {
	t.Helper()
	out := &filev3.FileAccessLog{}
	if err := l.GetTypedConfig().UnmarshalTo(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A provider's format is Istio's if it says none, and Envoy's if it says that there is one and not
// which.
func TestFormatsOfProviders(t *testing.T) {
	const envoys = "Envoy's"
	for given, want := range map[string]string{
		`{}`:                                    text,
		`{"logFormat": {}}`:                     envoys,
		`{"logFormat": {"text": ""}}`:           text,
		`{"logFormat": {"text": "x"}}`:          "x\n",
		`{"logFormat": {"labels": {}}}`:         "24 fields",
		`{"logFormat": {"labels": {"a": "b"}}}`: "1 fields",
	} {
		p := &meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{}
		if err := protojson.Unmarshal([]byte(given), p); err != nil {
			t.Fatal(err)
		}
		l := readFile(t, providerFile(p))
		got := l.GetLogFormat().GetTextFormatSource().GetInlineString()
		if fields := l.GetLogFormat().GetJsonFormat().GetFields(); len(fields) > 0 {
			got = strconv.Itoa(len(fields)) + " fields"
		} else if l.AccessLogFormat == nil {
			got = envoys
		}
		if got != want || l.Path != "/dev/stdout" {
			t.Errorf("%s: %q to %s, want %q", given, got, l.Path, want)
		}
	}
}

func TestJoin(t *testing.T) {
	for path, want := range map[string]string{
		"": "h.example", "/": "h.example/", "v1/traces": "h.example/v1/traces", "/v1//traces/": "h.example/v1/traces/", "/a/../b": "h.example/b",
		"/v1/traces?k=v": "h.example/v1/traces%3Fk=v",
	} {
		if got := join("h.example", path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
