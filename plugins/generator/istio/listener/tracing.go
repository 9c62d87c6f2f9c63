package listener

import (
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

func tracing(t Tracing) *hcm.HttpConnectionManager_Tracing {
	if !t.Enabled {
		return nil
	}
	return &hcm.HttpConnectionManager_Tracing{
		ClientSampling:  &typev3.Percent{Value: 100},
		RandomSampling:  &typev3.Percent{Value: t.Sampling},
		OverallSampling: &typev3.Percent{Value: 100},
		CustomTags:      append(dryRunTags(), standardTags(t)...),
	}
}

// standardTags say whose span it is.
func standardTags(t Tracing) []*tracingv3.CustomTag {
	var out []*tracingv3.CustomTag
	for _, tag := range []struct{ name, value string }{
		{"istio.canonical_revision", orElse(t.Revision, "latest")},
		{"istio.canonical_service", orElse(t.Service, "unknown")},
		{"istio.cluster_id", orElse(t.Cluster, "unknown")},
		{"istio.mesh_id", orElse(t.Mesh, "unknown")},
		{"istio.namespace", orElse(t.Namespace, "default")},
	} {
		out = append(out, &tracingv3.CustomTag{
			Tag:  tag.name,
			Type: &tracingv3.CustomTag_Literal_{Literal: &tracingv3.CustomTag_Literal{Value: tag.value}},
		})
	}
	return out
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
