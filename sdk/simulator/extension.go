package simulator

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// extension is a filter's configuration, from where it stands or from ECDS; nil: it isn't there
// (yet), and the simulator can only assume.
func (w *walk) extension(name string, config *anypb.Any, discovery *corev3.ExtensionConfigSource) *anypb.Any {
	if discovery == nil {
		return config
	}
	if f := w.filter(name); f != nil {
		return f.TypedConfig
	}
	return discovery.DefaultConfig
}

// harmless are filters that neither answer nor change where anything goes.
func harmless(config *anypb.Any) bool {
	switch string(config.MessageName()) {
	case "envoy.extensions.filters.http.grpc_stats.v3.FilterConfig",
		"envoy.extensions.filters.http.grpc_web.v3.GrpcWeb",
		"envoy.extensions.filters.http.compressor.v3.Compressor",
		"envoy.extensions.filters.http.decompressor.v3.Decompressor",
		"envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
		"io.istio.http.peer_metadata.Config",
		"istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig",
		"stats.PluginConfig",
		"envoy.tcp.metadataexchange.config.MetadataExchange":
		return true
	}
	return false
}
