package cluster

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	raw "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const tlsSocket = "envoy.transport_sockets.tls"

// originates reports whether the proxy itself speaks a TLS that isn't the mesh's.
func (in *Outbound) originates() bool {
	m := in.Policy.GetTls().GetMode()
	return m == networking.ClientTLSSettings_SIMPLE || m == networking.ClientTLSSettings_MUTUAL
}

func (in *Outbound) transport(c *clusterv3.Cluster, http *httpOptions) {
	settings := in.Policy.GetTls()
	switch {
	case settings == nil:
		in.automatic(c, http)
	case settings.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL:
		if !in.Client.NoAgent {
			c.TransportSocket = socket(in.mutual(settings, http))
		}
	case in.originates():
		in.originate(c, settings, http)
	}
}

// automatic speaks mutual TLS to the endpoints that do, where nobody says what to speak: each says so itself, and where
// only the client knows which it is, all of them do.
func (in *Outbound) automatic(c *clusterv3.Cluster, http *httpOptions) {
	if !in.Mesh.AutoMTLS || in.Client.NoAgent || in.Service.External || in.Refuses {
		return
	}
	mutual := socket(in.mutual(&networking.ClientTLSSettings{}, http))
	if c.GetType() == clusterv3.Cluster_ORIGINAL_DST {
		c.TransportSocket = mutual
		return
	}
	c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{
		{Name: "tlsMode-istio", Match: encode.Struct(map[string]any{"tlsMode": "istio"}), TransportSocket: mutual},
		plaintext(),
	}
}

// mutual is the mesh's mutual TLS.
func (in *Outbound) mutual(s *networking.ClientTLSSettings, http *httpOptions) *tls.UpstreamTlsContext {
	names := in.Identities
	if len(s.SubjectAltNames) > 0 {
		names = s.SubjectAltNames
	}
	sni := s.Sni
	if sni == "" {
		sni = in.Name.SNI()
	}
	alpn := []string{"istio-peer-exchange", "istio"}
	if in.Protocol.IsHTTP2() || http.upgrade {
		alpn = append(alpn, "h2")
	}
	return &tls.UpstreamTlsContext{
		Sni: sni,
		CommonTlsContext: &tls.CommonTlsContext{
			AlpnProtocols:                  alpn,
			TlsParams:                      clientParameters(),
			TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{encode.AgentSecret(encode.WorkloadCertificate)},
			ValidationContextType:          validation(names, encode.AgentSecret(encode.WorkloadRoots)),
		},
	}
}

func clientParameters() *tls.TlsParameters {
	return &tls.TlsParameters{
		TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3,
	}
}

// validation trusts the roots of a secret for exactly these names; for any where there are none.
func validation(names []string, roots *tls.SdsSecretConfig) *tls.CommonTlsContext_CombinedValidationContext {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	ctx := &tls.CertificateValidationContext{}
	for _, n := range sorted {
		// the untyped list is what Istio sends, and what people's EnvoyFilters match
		ctx.MatchSubjectAltNames = append(ctx.MatchSubjectAltNames, &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: n}})
	}
	return &tls.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tls.CommonTlsContext_CombinedCertificateValidationContext{
		DefaultValidationContext:         ctx,
		ValidationContextSdsSecretConfig: roots,
	}}
}

func socket(m proto.Message) *core.TransportSocket {
	return &core.TransportSocket{Name: tlsSocket, ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(m)}}
}

// plaintext matches every endpoint that nothing before it did.
func plaintext() *clusterv3.Cluster_TransportSocketMatch {
	return &clusterv3.Cluster_TransportSocketMatch{
		Name:  "tlsMode-disabled",
		Match: encode.Struct(map[string]any{}),
		TransportSocket: &core.TransportSocket{
			Name:       "envoy.transport_sockets.raw_buffer",
			ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(&raw.RawBuffer{})},
		},
	}
}
