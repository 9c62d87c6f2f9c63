package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Filters are the filters that a proxy can run on its connections to upstreams.
type Filters struct {
	// MetadataExchange: the proxy has Istio's own filter that tells peers who they talk to.
	MetadataExchange bool
}

func (f Filters) upstream() []*clusterv3.Filter {
	if !f.MetadataExchange {
		return nil
	}
	return []*clusterv3.Filter{{
		Name: "istio.metadata_exchange",
		TypedConfig: encode.TypedStruct("envoy.tcp.metadataexchange.config.MetadataExchange", map[string]any{
			"enable_discovery": true,
			"protocol":         "istio-peer-exchange",
		}),
	}}
}
