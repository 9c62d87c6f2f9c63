package telemetry

import (
	"maps"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"
)

// Tracing is how the spans of one side are made.
type Tracing struct {
	// Provider takes the spans, At its place, SamplerAt that of its sampler. Without a provider the
	// proxy's bootstrap has one, and the proxy's own settings count alone.
	Provider      *meshv1.MeshConfig_ExtensionProvider
	At, SamplerAt Target
	// Sampling is in percent; the proxy's own setting if nil.
	Sampling *float64
	// Tags of spans; those of the proxy's settings if there are none.
	Tags map[string]*api.Tracing_CustomTag
	// NoStandardTags: the tags that say whose span it is are left out.
	NoStandardTags bool
	// NoRequestID: the request's id doesn't say whether it is sampled.
	NoRequestID bool
	// NoPropagation: headers that carry the trace on are left out.
	NoPropagation bool
}

// Equal reports whether two are the same.
func (t *Tracing) Equal(o *Tracing) bool {
	if t == nil || o == nil {
		return t == o
	}
	sampling := t.Sampling == o.Sampling || t.Sampling != nil && o.Sampling != nil && *t.Sampling == *o.Sampling
	return sampling && proto.Equal(t.Provider, o.Provider) && t.At == o.At && t.SamplerAt == o.SamplerAt &&
		t.NoStandardTags == o.NoStandardTags && t.NoRequestID == o.NoRequestID && t.NoPropagation == o.NoPropagation &&
		maps.EqualFunc(t.Tags, o.Tags, func(a, b *api.Tracing_CustomTag) bool { return proto.Equal(a, b) })
}

// tracing merges what resources say; nil if no spans are made.
func (in *Input) tracing() *Tracing {
	out := &Tracing{}
	defaults := in.Mesh.GetDefaultProviders().GetTracing()
	said, off := len(defaults) > 0, false
	if said {
		out.Provider = in.provider(defaults[0])
	}
	for _, r := range in.Resources {
		for _, t := range r.Tracing {
			said = true
			if m := t.GetMatch().GetMode(); m != api.WorkloadMode_CLIENT_AND_SERVER && m != in.Side.mode() {
				continue
			}
			if t.DisableSpanReporting != nil {
				off = t.DisableSpanReporting.Value
			}
			out.apply(t, in)
		}
	}
	switch {
	case !said && in.Mesh.EnableTracing:
		return &Tracing{}
	case !said || off || !out.locate(in.Find):
		return nil
	}
	return out
}

// apply puts a setting on top. Of several providers the first counts.
func (t *Tracing) apply(s *api.Tracing, in *Input) {
	if len(s.Providers) > 0 {
		t.Provider = in.provider(s.Providers[0].GetName())
	}
	if s.CustomTags != nil {
		t.Tags = s.CustomTags
	}
	if s.RandomSamplingPercentage != nil {
		t.Sampling = &s.RandomSamplingPercentage.Value
	}
	if s.UseRequestIdForTraceSampling != nil {
		t.NoRequestID = !s.UseRequestIdForTraceSampling.Value
	}
	if s.EnableIstioTags != nil {
		t.NoStandardTags = !s.EnableIstioTags.Value
	}
	if s.DisableContextPropagation != nil {
		t.NoPropagation = s.DisableContextPropagation.Value
	}
}

// locate finds the provider's service, and its sampler's; false where that can't be, or where the
// provider takes no spans.
func (t *Tracing) locate(find Find) bool {
	switch p := t.Provider.GetProvider().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_Zipkin:
		t.At = find.target(p.Zipkin.Service, p.Zipkin.Port)
	case *meshv1.MeshConfig_ExtensionProvider_Datadog:
		t.At = find.target(p.Datadog.Service, p.Datadog.Port)
	case *meshv1.MeshConfig_ExtensionProvider_Skywalking:
		t.At = find.target(p.Skywalking.Service, p.Skywalking.Port)
	case *meshv1.MeshConfig_ExtensionProvider_Opentelemetry:
		t.At = find.target(p.Opentelemetry.Service, p.Opentelemetry.Port)
		return t.At.found() && t.locateSampler(p.Opentelemetry, find)
	}
	return t.At.found()
}

// locateSampler finds the service that a sampler asks; the provider's own, over HTTP, where it
// names none.
func (t *Tracing) locateSampler(p *otelProvider, find Find) bool {
	s := p.GetDynatraceSampler()
	if s == nil {
		return true
	}
	t.SamplerAt = t.At
	if s.HttpService == nil {
		return p.Http != nil
	}
	t.SamplerAt = find.target(s.HttpService.Service, s.HttpService.Port)
	return t.SamplerAt.found()
}
