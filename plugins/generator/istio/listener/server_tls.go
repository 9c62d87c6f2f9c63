package listener

import (
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// TLSDefaults are the mesh's settings (MeshConfig.tlsDefaults) for TLS that isn't the mesh's own.
// Lists are joined by commas.
type TLSDefaults struct {
	Ciphers, Curves string
	Minimum         tls.TlsParameters_TlsProtocol
	// Secrets is the cluster of the mesh's service for credentials called sds://NAME; empty without
	// one.
	Secrets string
}

// serverSocket opens TLS as a server. exchange: bytes are passed on, so that peers of the mesh may
// tell who they are first.
func serverSocket(s *networking.ServerTLSSettings, defaults TLSDefaults, own encode.Certificates, exchange bool) *core.TransportSocket {
	return &core.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: encode.Any(serverContext(s, defaults, own, exchange))},
	}
}

func serverContext(s *networking.ServerTLSSettings, defaults TLSDefaults, own encode.Certificates, exchange bool) *tls.DownstreamTlsContext {
	common := &tls.CommonTlsContext{AlpnProtocols: []string{"h2", "http/1.1"}}
	mesh := s.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL
	if mesh && exchange {
		common.AlpnProtocols = append([]string{"istio-peer-exchange"}, common.AlpnProtocols...)
	}
	switch {
	case mesh:
		own.Show(common)
		own.Trust(common, clientNames(s))
	case s.CredentialName != "" || len(s.CredentialNames) > 0:
		credentials(common, s, encode.External{Socket: own.Socket, Cluster: defaults.Secrets, Alone: !own.From.Served()})
	default:
		files(common, s, own.From)
	}
	if !mesh {
		common.TlsParams = parameters(s, defaults)
	}
	return &tls.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(requires(s))}
}

// requires reports whether clients must show a certificate; asks, whether one that they show is
// looked at.
func requires(s *networking.ServerTLSSettings) bool {
	return s.Mode == networking.ServerTLSSettings_MUTUAL || s.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL
}

func asks(s *networking.ServerTLSSettings) bool {
	return requires(s) || s.Mode == networking.ServerTLSSettings_OPTIONAL_MUTUAL
}

// credentials are secrets that the control plane serves, or others do.
func credentials(out *tls.CommonTlsContext, s *networking.ServerTLSSettings, others encode.External) {
	names := s.CredentialNames
	if len(names) == 0 {
		names = []string{s.CredentialName}
	}
	for _, n := range names {
		out.TlsCertificateSdsSecretConfigs = append(out.TlsCertificateSdsSecretConfigs, others.Credential(n))
	}
	check := clientNames(s)
	if !asks(s) {
		if len(s.SubjectAltNames) > 0 {
			out.ValidationContextType = &tls.CommonTlsContext_ValidationContext{ValidationContext: check}
		}
		return
	}
	check.VerifyCertificateSpki = s.VerifyCertificateSpki
	check.VerifyCertificateHash = s.VerifyCertificateHash
	roots := s.CaCertCredentialName
	if roots == "" {
		roots = names[0] + encode.RootsSuffix
	}
	encode.TrustSecret(out, check, others.Credential(roots))
}

// files are what the server names, and where it names none the workload's own.
func files(out *tls.CommonTlsContext, s *networking.ServerTLSSettings, secrets encode.Secrets) {
	for _, c := range s.TlsCertificates {
		certificateFiles(out, c.ServerCertificate, c.PrivateKey, secrets)
	}
	if len(s.TlsCertificates) == 0 {
		certificateFiles(out, s.ServerCertificate, s.PrivateKey, secrets)
	}
	switch {
	case !asks(s):
	case s.CaCertificates != "":
		secrets.Trust(out, clientNames(s), s.CaCertificates)
	default:
		encode.TrustSecret(out, clientNames(s), secrets.Workload(encode.WorkloadRoots))
	}
}

func certificateFiles(out *tls.CommonTlsContext, certificate, key string, secrets encode.Secrets) {
	if certificate == "" || key == "" {
		out.TlsCertificateSdsSecretConfigs = append(out.TlsCertificateSdsSecretConfigs, secrets.Workload(encode.WorkloadCertificate))
		return
	}
	secrets.Show(out, certificate, key)
}

// clientNames are the names of which a client's certificate must have one; any if there are none.
// It may be anybody's where the server says so.
func clientNames(s *networking.ServerTLSSettings) *tls.CertificateValidationContext {
	out := &tls.CertificateValidationContext{}
	for _, n := range s.SubjectAltNames {
		// the untyped list is what Istio sends, and what people's EnvoyFilters match
		out.MatchSubjectAltNames = append(out.MatchSubjectAltNames, &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: n}})
	}
	if asks(s) && s.InsecureSkipVerify.GetValue() {
		out.TrustChainVerification = tls.CertificateValidationContext_ACCEPT_UNTRUSTED
	}
	if s.CaCrl != "" && s.CredentialName == "" && len(s.CredentialNames) == 0 {
		out.Crl = &core.DataSource{Specifier: &core.DataSource_Filename{Filename: s.CaCrl}}
	}
	return out
}

// parameters are the server's own, else the mesh's; nil where nothing is said.
func parameters(s *networking.ServerTLSSettings, defaults TLSDefaults) *tls.TlsParameters {
	out := &tls.TlsParameters{
		TlsMinimumProtocolVersion: defaults.Minimum,
		TlsMaximumProtocolVersion: tls.TlsParameters_TlsProtocol(s.MaxProtocolVersion),
		CipherSuites:              words(defaults.Ciphers),
		EcdhCurves:                words(defaults.Curves),
	}
	if s.MinProtocolVersion != networking.ServerTLSSettings_TLS_AUTO {
		out.TlsMinimumProtocolVersion = tls.TlsParameters_TlsProtocol(s.MinProtocolVersion)
	}
	if own := knownCiphers(s.CipherSuites); len(own) > 0 {
		out.CipherSuites = own
	}
	if proto.Size(out) == 0 {
		return nil
	}
	return out
}

func words(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}

// knownCiphers leaves out what Envoy would refuse the whole listener for, and repetitions.
// Expressions stay, as far as their first letter tells: -NAME, [NAME|NAME], ALL.
func knownCiphers(list []string) []string {
	known := serverCiphers()
	var out []string
	for _, c := range list {
		if !slices.Contains(out, c) && (c == "" || c == "ALL" || !alphanumeric(c[0]) || slices.Contains(known, c)) {
			out = append(out, c)
		}
	}
	return out
}

func alphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// serverCiphers are those that the field ServerTLSSettings.cipherSuites may name.
func serverCiphers() []string {
	return []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
		"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
		"ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
		"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
	}
}
