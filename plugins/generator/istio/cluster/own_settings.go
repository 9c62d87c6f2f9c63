package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	preservecase "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// KeepAlive probes idle connections of a cluster as the mesh says, where nothing else is said.
func (m Mesh) KeepAlive(c *clusterv3.Cluster) {
	if c.UpstreamConnectionOptions == nil {
		(&Outbound{Mesh: m}).tcpSettings(c, nil, &clusterv3.CircuitBreakers_Thresholds{})
	}
}

// SameCase keeps the case of the names of headers in HTTP/1 towards a cluster's endpoints. A port
// that says HTTP is not upgraded then, whoever asks for it: HTTP/2 has no case to keep.
func SameCase(c *clusterv3.Cluster, p config.Protocol) {
	if p != config.Sniffed && (!p.IsHTTP() || p.IsHTTP2()) {
		return
	}
	options := &http.HttpProtocolOptions{UpstreamProtocolOptions: onlyHTTP1()}
	if given := c.TypedExtensionProtocolOptions[httpOptionsKey]; given != nil {
		options.Reset()
		if err := proto.Unmarshal(given.Value, options); err != nil {
			return
		}
	}
	if p != config.Sniffed && options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil {
		options.UpstreamProtocolOptions = onlyHTTP1()
	}
	for _, h := range []*core.Http1ProtocolOptions{
		options.GetExplicitHttpConfig().GetHttpProtocolOptions(),
		options.GetUseDownstreamProtocolConfig().GetHttpProtocolOptions(),
	} {
		if h != nil {
			h.HeaderKeyFormat = &core.Http1ProtocolOptions_HeaderKeyFormat{HeaderFormat: sameCase()}
		}
	}
	setHTTP(c, options)
}

func sameCase() *core.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter {
	return &core.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter{StatefulFormatter: &core.TypedExtensionConfig{
		Name: "preserve_case", TypedConfig: encode.Any(&preservecase.PreserveCaseFormatterConfig{}),
	}}
}
