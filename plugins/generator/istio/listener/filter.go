package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcstats "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	grpcweb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mongo "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	alpn "istio.io/api/envoy/config/filter/http/alpn/v2alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// httpFilters are the filters of a chain, in Istio's order.
func httpFilters(p Proxy, inbound bool, protocol config.Protocol) []*hcm.HttpFilter {
	var out []*hcm.HttpFilter
	if p.MetadataExchange {
		out = append(out, peerMetadata(inbound))
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
	return append(out,
		httpFilter("envoy.filters.http.fault", &faultv3.HTTPFault{}),
		httpFilter("envoy.filters.http.cors", &corsv3.Cors{}),
		httpFilter("envoy.filters.http.router", &routerv3.Router{}),
	)
}

func httpFilter(name string, m proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: encode.Any(m)}}
}

// peerMetadata tells peers who they talk to, and finds out who talks.
func peerMetadata(inbound bool) *hcm.HttpFilter {
	side := "upstream"
	if inbound {
		side = "downstream"
	}
	headers := map[string]any{"istio_headers": map[string]any{}}
	config := encode.TypedStruct("io.istio.http.peer_metadata.Config", map[string]any{
		side + "_discovery":   []any{headers, map[string]any{"workload_discovery": map[string]any{}}},
		side + "_propagation": []any{headers},
	})
	return &hcm.HttpFilter{Name: "istio.metadata_exchange", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: config}}
}

// alpnOverride offers servers of the mesh protocols that say which HTTP is inside, so that they need not look.
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

func tcpProxy(cluster string) *listenerv3.Filter {
	return networkFilter("envoy.filters.network.tcp_proxy", &tcp.TcpProxy{
		StatPrefix:       cluster,
		ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: cluster},
	})
}

// connectionFilters pass a connection's bytes to a cluster.
func connectionFilters(cluster string, protocol config.Protocol) []*listenerv3.Filter {
	var out []*listenerv3.Filter
	if protocol == config.Mongo {
		out = append(out, networkFilter("envoy.filters.network.mongo_proxy", &mongo.MongoProxy{StatPrefix: cluster}))
	}
	return append(out, tcpProxy(cluster))
}
