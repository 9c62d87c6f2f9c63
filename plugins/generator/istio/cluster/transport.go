package cluster

import (
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
	case in.Client.Certificates.Chain != "" && mutualMode(settings) && !in.Service.External:
		in.originate(c, in.withFiles(settings.SubjectAltNames, settings.Sni), http)
	case settings.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL:
		if in.Client.Certificates.Any() {
			c.TransportSocket = socket(in.mutual(settings, http))
		}
	case in.originates():
		in.originate(c, settings, http)
	}
}

// automatic speaks mutual TLS to the endpoints that do, where nobody says what to speak: each says
// so itself, and where only the client knows which it is, all of them do.
func (in *Outbound) automatic(c *clusterv3.Cluster, http *httpOptions) {
	if !in.Mesh.AutoMTLS || !in.Client.Certificates.Any() || in.Service.External || in.Refuses {
		return
	}
	if in.Client.Certificates.Chain != "" {
		sni := in.Name.SNI()
		if IsDynamic(in.Service) {
			sni = ""
		}
		in.originate(c, in.withFiles(in.Identities, sni), http)
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

// mutualMode reports whether settings ask for mutual TLS of either kind.
func mutualMode(s *networking.ClientTLSSettings) bool {
	return s.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL || s.Mode == networking.ClientTLSSettings_MUTUAL
}

// withFiles is mutual TLS with the files that the proxy's metadata name.
func (in *Outbound) withFiles(names []string, sni string) *networking.ClientTLSSettings {
	files := in.Client.Certificates
	return &networking.ClientTLSSettings{
		Mode: networking.ClientTLSSettings_MUTUAL, ClientCertificate: files.Chain, PrivateKey: files.Key, CaCertificates: files.Root,
		SubjectAltNames: names, Sni: sni,
	}
}

// mutual is the mesh's mutual TLS.
func (in *Outbound) mutual(s *networking.ClientTLSSettings, http *httpOptions) *tls.UpstreamTlsContext {
	shown, names, sni := in.Client.Certificates, in.Identities, s.Sni
	// Files are for services of the mesh. Others are shown what the workload has, and who they are
	// the rule alone says, as with istiod.
	outside := shown.Chain != "" && shown.From.Any() && in.Service.External
	if outside {
		shown, names = encode.Certificates{From: shown.From}, nil
	}
	if len(s.SubjectAltNames) > 0 {
		names = s.SubjectAltNames
	}
	switch {
	case IsDynamic(in.Service): // each host has a name of its own
		http.upstream = checkHosts(sni == "", true)
	case sni == "" && outside:
		sni = in.Name.String()
	case sni == "":
		sni = in.Name.SNI()
	}
	alpn := []string{"istio-peer-exchange", "istio"}
	if http.isHTTP2(in.Protocol) {
		alpn = append(alpn, "h2")
	}
	common := &tls.CommonTlsContext{
		AlpnProtocols: alpn,
		TlsParams:     clientParameters(),
	}
	shown.Show(common)
	shown.Trust(common, check(names))
	return &tls.UpstreamTlsContext{Sni: sni, CommonTlsContext: common}
}

func clientParameters() *tls.TlsParameters {
	return &tls.TlsParameters{
		TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3,
	}
}

// check is for exactly these names; for any where there are none.
func check(names []string) *tls.CertificateValidationContext {
	ctx := &tls.CertificateValidationContext{}
	for _, n := range names {
		// the untyped list is what Istio sends, and what people's EnvoyFilters match
		ctx.MatchSubjectAltNames = append(ctx.MatchSubjectAltNames, &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: n}})
	}
	return ctx
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
