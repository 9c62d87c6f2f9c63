package listener

import (
	"slices"
	"strings"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
)

// defaultSampling is the share of requests that are traced where nobody says, in percent.
const defaultSampling = 1.0

// tracing is how spans are made; nil if they aren't.
func (p *Reporting) tracing() *hcm.HttpConnectionManager_Tracing {
	if p.Reports == nil || p.Reports.Tracing == nil {
		return nil
	}
	t, own := p.Reports.Tracing, p.Settings.config().GetTracing()
	if c := t.NeededCluster(); c != "" && slices.Contains(strings.Split(p.Tracing.Unreachable, ","), c) {
		return nil
	}
	out := &hcm.HttpConnectionManager_Tracing{
		ClientSampling:       &typev3.Percent{Value: 100},
		RandomSampling:       &typev3.Percent{Value: sampling(t, own)},
		OverallSampling:      &typev3.Percent{Value: 100},
		CustomTags:           p.Tracing.tags(t, own),
		NoContextPropagation: t.NoPropagation,
	}
	var longest uint32
	name := p.Tracing.Name
	if t.ByConvention() {
		name = p.Tracing.Conventional
	}
	out.Provider, longest = t.Tracer(name)
	if longest == 0 {
		longest = own.GetMaxPathTagLength()
	}
	if longest > 0 {
		out.MaxPathTagLength = wrapperspb.UInt32(longest)
	}
	if out.Provider != nil && (p.Router || t.Spawns()) {
		out.SpawnUpstreamSpan = wrapperspb.Bool(true)
	}
	return out
}

// sampling is in percent.
func sampling(t *telemetry.Tracing, own *meshv1.Tracing) float64 {
	switch s := own.GetSampling(); {
	case t.Samples():
		return 100
	case t.Sampling != nil:
		return *t.Sampling
	case s > 0 && s <= 100:
		return s
	}
	return defaultSampling
}

// tags are the standard ones and those of Telemetry, or else of the proxy's own settings, by name.
func (t *Tracing) tags(how *telemetry.Tracing, own *meshv1.Tracing) []*tracingv3.CustomTag {
	standard := !how.NoStandardTags
	if how.Provider == nil && own.GetEnableIstioTags() != nil {
		standard = own.EnableIstioTags.Value
	}
	var out []*tracingv3.CustomTag
	if standard {
		out = append(dryRunTags(), t.standardTags()...)
	}
	if len(how.Tags) > 0 {
		out = append(out, telemetry.CustomTags(how.Tags)...)
	} else {
		out = append(out, telemetry.ProxyTags(own.GetCustomTags())...)
	}
	slices.SortStableFunc(out, func(a, b *tracingv3.CustomTag) int { return strings.Compare(a.Tag, b.Tag) })
	return out
}

// standardTags say whose span it is.
func (t *Tracing) standardTags() []*tracingv3.CustomTag {
	return []*tracingv3.CustomTag{
		telemetry.Literal("istio.canonical_revision", orElse(t.Revision, "latest")),
		telemetry.Literal("istio.canonical_service", orElse(t.Service, "unknown")),
		telemetry.Literal("istio.cluster_id", orElse(t.Cluster, "unknown")),
		telemetry.Literal("istio.mesh_id", orElse(t.Mesh, "unknown")),
		telemetry.Literal("istio.namespace", orElse(t.Namespace, "default")),
	}
}
func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// dryRunTags say what authorization policies on trial would have decided.
func dryRunTags() []*tracingv3.CustomTag {
	var out []*tracingv3.CustomTag
	for _, tag := range []struct{ name, key string }{
		{"istio.authorization.dry_run.allow_policy.name", "istio_dry_run_allow_shadow_effective_policy_id"},
		{"istio.authorization.dry_run.allow_policy.result", "istio_dry_run_allow_shadow_engine_result"},
		{"istio.authorization.dry_run.deny_policy.name", "istio_dry_run_deny_shadow_effective_policy_id"},
		{"istio.authorization.dry_run.deny_policy.result", "istio_dry_run_deny_shadow_engine_result"},
	} {
		out = append(out, &tracingv3.CustomTag{Tag: tag.name, Type: &tracingv3.CustomTag_Metadata_{Metadata: rbacMetadata(tag.key)}})
	}
	return out
}

func rbacMetadata(key string) *tracingv3.CustomTag_Metadata {
	return &tracingv3.CustomTag_Metadata{
		Kind: &metadatav3.MetadataKind{Kind: &metadatav3.MetadataKind_Request_{Request: &metadatav3.MetadataKind_Request{}}},
		MetadataKey: &metadatav3.MetadataKey{
			Key:  "envoy.filters.http.rbac",
			Path: []*metadatav3.MetadataKey_PathSegment{{Segment: &metadatav3.MetadataKey_PathSegment_Key{Key: key}}},
		},
	}
}
