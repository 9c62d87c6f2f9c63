package telemetry

import (
	"slices"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
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
