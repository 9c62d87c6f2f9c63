package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocol "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// introduce has connections begin with the PROXY protocol, whichever way they go on.
func (in *Outbound) introduce(c *clusterv3.Cluster) {
	p := in.Policy.GetProxyProtocol()
	if p == nil {
		return
	}
	if c.TransportSocket == nil && len(c.TransportSocketMatches) == 0 {
		c.TransportSocket = plaintext().TransportSocket
		c.TransportSocket.Name = "raw_buffer" // the type says what it is
	}
	if c.TransportSocket != nil {
		c.TransportSocket = introduced(p, c.TransportSocket)
	}
	for _, m := range c.TransportSocketMatches {
		m.TransportSocket = introduced(p, m.TransportSocket)
	}
}

func introduced(p *networking.TrafficPolicy_ProxyProtocol, s *core.TransportSocket) *core.TransportSocket {
	version := core.ProxyProtocolConfig_V1
	if p.Version == networking.TrafficPolicy_ProxyProtocol_V2 {
		version = core.ProxyProtocolConfig_V2
	}
	return &core.TransportSocket{
		Name: "envoy.transport_sockets.upstream_proxy_protocol",
		ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(&proxyprotocol.ProxyProtocolUpstreamTransport{
			Config: &core.ProxyProtocolConfig{Version: version}, TransportSocket: s,
		})},
	}
}
