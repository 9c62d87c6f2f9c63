package listener

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	quic "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

func TestHTTP3HasAListenerOfItsOwn(t *testing.T) {
	l := BuildQUIC(Gateway{Bind: Bind{"0.0.0.0", 443}, Chains: []GatewayChain{{
		Names: []string{"a.com"}, Route: "https.443.https.web.default", Protocol: config.HTTPS,
		TLS: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_MUTUAL, CredentialName: "web"},
	}}})
	if l.Name != "udp_0.0.0.0_443" || l.Address.GetSocketAddress().Protocol != core.SocketAddress_UDP || l.UdpListenerConfig.GetQuicOptions() == nil {
		t.Errorf("listener %v", l)
	}
	var socket quic.QuicDownstreamTransport
	if err := l.FilterChains[0].TransportSocket.GetTypedConfig().UnmarshalTo(&socket); err != nil {
		t.Fatal(err)
	}
	ctx := socket.DownstreamTlsContext
	if got := ctx.CommonTlsContext.AlpnProtocols; len(got) != 1 || got[0] != "h3" {
		t.Errorf("protocols %v", got)
	}
	if ctx.RequireClientCertificate.GetValue() {
		t.Error("client certificates can't be asked for in QUIC")
	}
}
