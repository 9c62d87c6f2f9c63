package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcstats "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	grpcweb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	alpn "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
)

// httpFilters are the filters of a chain, in Istio's order.
func httpFilters(p Reporting, inbound bool, protocol config.Protocol) []*hcm.HttpFilter {
	var out []*hcm.HttpFilter
	if p.MetadataExchange {
		out = append(out, peerMetadata(inbound, p.Settings.headers().GetMetadataExchangeHeaders().GetMode()))
	}
	if protocol == config.GRPCWeb {
		out = append(out, httpFilter("envoy.filters.http.grpc_web", &grpcweb.GrpcWeb{}))
	}
	out = append(out, httpFilter("envoy.filters.http.grpc_stats", &grpcstats.FilterConfig{
		EmitFilterState:        true,
		PerMethodStatSpecifier: &grpcstats.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
	}))
	if p.ALPN && !inbound {
		out = append(out, alpnOverride())
	}
	out = append(out, httpFilter("envoy.filters.http.fault", &faultv3.HTTPFault{}), httpFilter("envoy.filters.http.cors", &corsv3.Cors{}))
	out = append(out, p.requestStats()...)
	if p.Sessions && !inbound {
		out = append(out, httpFilter(route.SessionFilter, &statefulv3.StatefulSession{}))
	}
	return append(out, httpFilter("envoy.filters.http.router", &routerv3.Router{
		SuppressEnvoyHeaders: p.Settings.headers().GetEnvoyDebugHeaders().GetDisabled().GetValue(),
	}))
}

func httpFilter(name string, m proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: encode.Any(m)}}
}

// peerMetadata tells peers who they talk to, and finds out who talks. Servers outside the mesh
// aren't told where mode says so.
func peerMetadata(inbound bool, mode meshv1.ProxyConfig_ProxyHeaders_MetadataExchangeMode) *hcm.HttpFilter {
	side, told := "upstream", map[string]any{}
	if inbound {
		side = "downstream"
	} else if mode == meshv1.ProxyConfig_ProxyHeaders_IN_MESH {
		told["skip_external_clusters"] = true
	}
	headers := map[string]any{"istio_headers": map[string]any{}}
	config := encode.TypedStruct("io.istio.http.peer_metadata.Config", map[string]any{
		side + "_discovery":   []any{headers, map[string]any{"workload_discovery": map[string]any{}}},
		side + "_propagation": []any{map[string]any{"istio_headers": told}},
	})
	return &hcm.HttpFilter{Name: "istio.metadata_exchange", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: config}}
}

// alpnOverride offers servers of the mesh protocols that say which HTTP is inside, so that they
// need not look.
func alpnOverride() *hcm.HttpFilter {
	return httpFilter("istio.alpn", &alpn.FilterConfig{AlpnOverride: []*alpn.FilterConfig_AlpnOverride{
		{UpstreamProtocol: alpn.FilterConfig_HTTP10, AlpnOverride: []string{"istio-http/1.0", "istio", "http/1.0"}},
		{UpstreamProtocol: alpn.FilterConfig_HTTP11, AlpnOverride: []string{"istio-http/1.1", "istio", "http/1.1"}},
		{UpstreamProtocol: alpn.FilterConfig_HTTP2, AlpnOverride: []string{"istio-h2", "istio", "h2"}},
	}})
}

func networkFilter(name string, m proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: encode.Any(m)}}
}

// networkMetadata is peerMetadata for connections.
func networkMetadata(p Proxy) []*listenerv3.Filter {
	if !p.MetadataExchange {
		return nil
	}
	config := encode.TypedStruct("envoy.tcp.metadataexchange.config.MetadataExchange", map[string]any{
		"enable_discovery": true,
		"protocol":         "istio-peer-exchange",
	})
	return []*listenerv3.Filter{{Name: "istio.metadata_exchange", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}}}
}
