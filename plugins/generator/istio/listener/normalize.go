package listener

import (
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Normalization is what is made of a request's path before anybody looks at it.
type Normalization = meshv1.MeshConfig_ProxyPathNormalization_NormalizationType

func normalize(m *hcm.HttpConnectionManager, how Normalization) {
	m.NormalizePath = wrapperspb.Bool(how != meshv1.MeshConfig_ProxyPathNormalization_NONE)
	m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_KEEP_UNCHANGED
	switch how {
	case meshv1.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES:
		m.PathWithEscapedSlashesAction = hcm.HttpConnectionManager_UNESCAPE_AND_FORWARD
		m.MergeSlashes = true
	case meshv1.MeshConfig_ProxyPathNormalization_MERGE_SLASHES:
		m.MergeSlashes = true
	}
}
