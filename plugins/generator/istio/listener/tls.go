package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Transport protocols as the inspector names them.
const (
	rawBuffer = "raw_buffer"
	tlsBytes  = "tls"
)

// Application protocols that clients of the mesh offer in TLS.
func meshTCP() []string  { return []string{"istio-peer-exchange", "istio"} }
func meshHTTP() []string { return []string{"istio-http/1.0", "istio-http/1.1", "istio-h2"} }

// MeshProtocols are all of them.
func MeshProtocols() []string { return meshAny() }

func meshAny() []string { return append([]string{"istio", "istio-peer-exchange"}, meshHTTP()...) }

// ciphers are Istio's for TLS 1.2, strongest first.
func ciphers() []string {
	return []string{
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
		"AES256-GCM-SHA384", "AES128-GCM-SHA256",
	}
}

// mutualTLS is the mesh's mutual TLS on the server's side. http: requests are read, so that no peer
// exchange follows the handshake.
func mutualTLS(http bool, mesh MeshTLS, own encode.Certificates) *core.TransportSocket {
	alpn := []string{"h2", "http/1.1"}
	if !http {
		alpn = append([]string{"istio-peer-exchange"}, alpn...)
	}
	validation := &tls.CertificateValidationContext{}
	for _, d := range mesh.TrustDomains {
		//nolint:staticcheck // the untyped list is what Istio sends, and what people's EnvoyFilters match
		validation.MatchSubjectAltNames = append(validation.MatchSubjectAltNames,
			&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: istio.Scheme + d + "/"}})
	}
	common := &tls.CommonTlsContext{
		AlpnProtocols: alpn,
		TlsParams: &tls.TlsParameters{
			TlsMinimumProtocolVersion: mesh.minimum(),
			TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3,
			CipherSuites:              mesh.ciphers(),
		},
	}
	own.Show(common)
	own.Trust(common, validation)
	ctx := &tls.DownstreamTlsContext{RequireClientCertificate: wrapperspb.Bool(true), CommonTlsContext: common}
	return &core.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(ctx)},
	}
}
