package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	quic "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// QUICName is the name of the listener for HTTP/3 at a place: udp_ADDRESS_PORT.
func (b Bind) QUICName() string { return "udp_" + b.Name() }

// BuildQUIC makes the listener for HTTP/3 beside that for HTTPS: the same names and routes, over
// UDP. Envoy can't ask clients for certificates there.
func BuildQUIC(in Gateway) *listenerv3.Listener {
	address := socketAddress(in.Address, in.Port)
	address.GetSocketAddress().Protocol = core.SocketAddress_UDP
	out := &listenerv3.Listener{
		Name:                                 in.QUICName(),
		Address:                              address,
		AdditionalAddresses:                  in.elsewhere(),
		TrafficDirection:                     core.TrafficDirection_OUTBOUND,
		PerConnectionBufferLimitBytes:        in.Proxy.Settings.buffer(),
		MaxConnectionsToAcceptPerSocketEvent: wrapperspb.UInt32(1),
		AccessLog:                            in.Proxy.refused(),
		UdpListenerConfig: &listenerv3.UdpListenerConfig{
			QuicOptions:            &listenerv3.QuicProtocolOptions{},
			DownstreamSocketConfig: &core.UdpSocketConfig{},
		},
	}
	for _, a := range out.AdditionalAddresses {
		a.GetAddress().GetSocketAddress().Protocol = core.SocketAddress_UDP
	}
	for _, c := range in.Chains {
		if c.Stat == "" {
			c.Stat = "outbound_" + out.Name + ";"
		}
		out.FilterChains = append(out.FilterChains, in.quicChain(c))
	}
	return out
}

func (in *Gateway) quicChain(c GatewayChain) *listenerv3.FilterChain {
	m := in.manager(c)
	m.CodecType = hcm.HttpConnectionManager_HTTP3
	m.Http3ProtocolOptions = &core.Http3ProtocolOptions{}
	ctx := serverContext(c.TLS, in.TLS, in.Proxy.Certificates, false)
	ctx.CommonTlsContext.AlpnProtocols = []string{"h3"}
	ctx.RequireClientCertificate = wrapperspb.Bool(false)
	out := in.chain(c)
	out.Filters = []*listenerv3.Filter{in.Proxy.Settings.finished(m)}
	out.TransportSocket = &core.TransportSocket{
		Name:       "envoy.transport_sockets.quic",
		ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(&quic.QuicDownstreamTransport{DownstreamTlsContext: ctx})},
	}
	return out
}
