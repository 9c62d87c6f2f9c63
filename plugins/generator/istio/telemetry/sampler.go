package telemetry

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	samplers "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

type (
	otelProvider     = meshv1.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider
	dynatraceSampler = meshv1.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider_DynatraceSampler
)

// dynatrace asks Dynatrace how many spans it wants: at the sampler's own service, or at the
// provider's.
func (t *Tracing) dynatrace(p *otelProvider, s *dynatraceSampler) *core.TypedExtensionConfig {
	path, how := "api/v2/samplingConfiguration", p.Http
	if s.HttpService != nil {
		path, how = s.HttpService.GetHttp().GetPath(), s.HttpService.Http
	}
	return &core.TypedExtensionConfig{
		Name: "envoy.tracers.opentelemetry.samplers.dynatrace",
		TypedConfig: encode.Any(&samplers.DynatraceSamplerConfig{
			Tenant:             s.Tenant,
			ClusterId:          s.ClusterId,
			RootSpansPerMinute: s.RootSpansPerMinute,
			HttpService:        t.SamplerAt.http(join(t.SamplerAt.Host, path), how.GetTimeout(), how.GetHeaders()),
		}),
	}
}
