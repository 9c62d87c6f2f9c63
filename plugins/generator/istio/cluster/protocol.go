package cluster

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const passthroughIdle = 300 * time.Second

// upstreamHTTP says which HTTP is spoken to endpoints; nil where Envoy's default, HTTP/1.1, is
// meant.
func upstreamHTTP(p config.Protocol) *http.HttpProtocolOptions {
	switch {
	case p.IsHTTP2():
		return &http.HttpProtocolOptions{UpstreamProtocolOptions: onlyHTTP2()}
	case p == config.Sniffed:
		return &http.HttpProtocolOptions{UpstreamProtocolOptions: downstreamProtocol()}
	}
	return nil
}

func onlyHTTP2() *http.HttpProtocolOptions_ExplicitHttpConfig_ {
	return &http.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &http.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{}},
	}}
}

// downstreamProtocol speaks to endpoints as the client spoke to the proxy.
func downstreamProtocol() *http.HttpProtocolOptions_UseDownstreamProtocolConfig {
	return &http.HttpProtocolOptions_UseDownstreamProtocolConfig{
		UseDownstreamProtocolConfig: &http.HttpProtocolOptions_UseDownstreamHttpConfig{
			HttpProtocolOptions:  &core.Http1ProtocolOptions{},
			Http2ProtocolOptions: &core.Http2ProtocolOptions{},
		},
	}
}

func setHTTP(c *clusterv3.Cluster, o *http.HttpProtocolOptions) {
	if o != nil {
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptionsKey: encode.Any(o)}
	}
}
