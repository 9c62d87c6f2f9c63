package telemetry

import (
	"net/url"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	detectors "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/resource_detectors/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// zipkinTimeout is how long Zipkin may take; Envoy asks for one.
const zipkinTimeout = 5 * time.Second

// Tracer is the provider as proxies call it, and the longest that a path may be in its tags (0: as
// long as elsewhere said); service is what the proxy calls itself. It is nil without a provider.
func (t *Tracing) Tracer(service string) (tracer *tracev3.Tracing_Http, maxPath uint32) {
	switch p := t.Provider.GetProvider().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_Zipkin:
		return tracerOf("envoy.tracers.zipkin", t.zipkin(p.Zipkin)), p.Zipkin.MaxTagLength
	case *meshv1.MeshConfig_ExtensionProvider_Datadog:
		return tracerOf("envoy.tracers.datadog", &tracev3.DatadogConfig{
			CollectorCluster: t.At.Cluster, CollectorHostname: t.At.Host, ServiceName: service,
		}), p.Datadog.MaxTagLength
	case *meshv1.MeshConfig_ExtensionProvider_Skywalking:
		return tracerOf("envoy.tracers.skywalking", &tracev3.SkyWalkingConfig{GrpcService: t.At.grpc()}), 0
	case *meshv1.MeshConfig_ExtensionProvider_Opentelemetry:
		return tracerOf("envoy.tracers.opentelemetry", t.openTelemetry(p.Opentelemetry, service)), p.Opentelemetry.MaxTagLength
	}
	return nil, 0
}

func tracerOf(name string, m proto.Message) *tracev3.Tracing_Http {
	return &tracev3.Tracing_Http{Name: name, ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: encode.Any(m)}}
}

// NamesService reports whether the provider's spans say what the proxy calls itself.
func (t *Tracing) NamesService() bool {
	switch t.Provider.GetProvider().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_Datadog, *meshv1.MeshConfig_ExtensionProvider_Opentelemetry:
		return true
	}
	return false
}

// ByConvention reports whether spans name their service as OpenTelemetry's conventions for
// Kubernetes do.
func (t *Tracing) ByConvention() bool {
	return t.Provider.GetOpentelemetry().GetServiceAttributeEnrichment() == meshv1.MeshConfig_ExtensionProvider_OTEL_SEMANTIC_CONVENTIONS
}

// NeededCluster is the collector's, where Envoy refuses a listener without such a cluster;
// otherwise empty.
func (t *Tracing) NeededCluster() string {
	switch t.Provider.GetProvider().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_Zipkin, *meshv1.MeshConfig_ExtensionProvider_Datadog:
		return t.At.Cluster
	}
	return ""
}

// Spawns reports whether the provider wants a span of its own for each request sent; gateways send
// one anyhow.
func (t *Tracing) Spawns() bool {
	_, ok := t.Provider.GetProvider().(*meshv1.MeshConfig_ExtensionProvider_Skywalking)
	return ok
}

// Samples reports whether the provider decides itself which spans it takes, and so gets all of
// them.
func (t *Tracing) Samples() bool { return t.Provider.GetOpentelemetry().GetSampling() != nil }

func (t *Tracing) zipkin(p *meshv1.MeshConfig_ExtensionProvider_ZipkinTracingProvider) *tracev3.ZipkinConfig {
	path, timeout := p.Path, p.Timeout
	if path == "" {
		path = "/api/v2/spans"
	}
	if timeout == nil {
		timeout = durationpb.New(zipkinTimeout)
	}
	out := &tracev3.ZipkinConfig{
		CollectorEndpointVersion: tracev3.ZipkinConfig_HTTP_JSON,
		TraceId_128Bit:           !p.Enable_64BitTraceId,
		SharedSpanContext:        wrapperspb.Bool(false),
		CollectorService:         t.At.http("http://"+t.At.Host+path, timeout, p.Headers),
	}
	if p.TraceContextOption == meshv1.MeshConfig_ExtensionProvider_ZipkinTracingProvider_USE_B3_WITH_W3C_PROPAGATION {
		out.TraceContextOption = tracev3.ZipkinConfig_USE_B3_WITH_W3C_PROPAGATION
	}
	return out
}

func (t *Tracing) openTelemetry(p *otelProvider, service string) *tracev3.OpenTelemetryConfig {
	out := &tracev3.OpenTelemetryConfig{ServiceName: service, ResourceDetectors: detectorsOf(p.ResourceDetectors, t.ByConvention())}
	if s := p.GetDynatraceSampler(); s != nil {
		out.Sampler = t.dynatrace(p, s)
	}
	if h := p.Http; h != nil {
		out.HttpService = t.At.http(join(t.At.Host, h.Path), h.Timeout, h.Headers)
		return out
	}
	out.GrpcService = t.At.grpc()
	out.GrpcService.Timeout = p.GetGrpc().GetTimeout()
	for _, h := range p.GetGrpc().GetInitialMetadata() {
		out.GrpcService.InitialMetadata = append(out.GrpcService.InitialMetadata, &core.HeaderValue{Key: h.Name, Value: h.GetValue()})
	}
	return out
}

// join makes a URI of a host and a path, cleaned as URIs are; what a path can't hold, such as a
// query, is escaped.
func join(host, path string) string {
	out, _ := url.JoinPath(host, path) // a service's name is always readable as the beginning of a URI
	return out
}

// detectorsOf are those that are asked for; the environment's also where agents put into it what
// the conventions want.
func detectorsOf(d *meshv1.MeshConfig_ExtensionProvider_ResourceDetectors, environment bool) []*core.TypedExtensionConfig {
	const prefix = "envoy.tracers.opentelemetry.resource_detectors."
	var out []*core.TypedExtensionConfig
	if d.GetEnvironment() != nil || environment {
		out = append(out, &core.TypedExtensionConfig{
			Name: prefix + "environment", TypedConfig: encode.Any(&detectors.EnvironmentResourceDetectorConfig{}),
		})
	}
	if d.GetDynatrace() != nil {
		out = append(out, &core.TypedExtensionConfig{
			Name: prefix + "dynatrace", TypedConfig: encode.Any(&detectors.DynatraceResourceDetectorConfig{}),
		})
	}
	return out
}
