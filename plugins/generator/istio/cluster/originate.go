package cluster

import (
	"cmp"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// configMap names a credential that isn't secret.
const configMap = "configmap://"

// originate is TLS towards a server that isn't of the mesh, or that is asked for it.
func (in *Outbound) originate(c *clusterv3.Cluster, s *networking.ClientTLSSettings, http *httpOptions) {
	if s.CredentialName != "" && !in.hasCredential(s.CredentialName) {
		return
	}
	skip := s.GetInsecureSkipVerify().GetValue()
	switch {
	case IsDynamic(in.Service):
		http.upstream = checkHosts(s.Sni == "", !skip)
	case s.Sni == "":
		http.upstream = &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: !skip && len(s.SubjectAltNames) == 0}
	}
	common := &tls.CommonTlsContext{TlsParams: in.originParameters()}
	if s.Mode == networking.ClientTLSSettings_MUTUAL && !in.show(common, s) {
		return
	}
	if in.Client.Shown != "" && s.Mode == networking.ClientTLSSettings_SIMPLE && s.ClientCertificate == config.OfGateway {
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{in.credential(in.Client.Shown)}
	}
	in.trust(common, s)
	if http.isHTTP2(in.Protocol) {
		common.AlpnProtocols = []string{"h2"}
	}
	c.TransportSocket = socket(&tls.UpstreamTlsContext{Sni: s.Sni, CommonTlsContext: common})
}

// hasCredential reports whether the proxy may ask for a credential: a gateway may, and a sidecar
// where the rule is for its workload alone. Others would wait for what they don't get. Roots that
// can't be used are nobody's, and all ask for them: nothing must get through without.
func (in *Outbound) hasCredential(name string) bool {
	return in.Client.Router || in.Selected || strings.HasPrefix(name, configMap) || strings.HasPrefix(name, encode.InvalidSecret)
}

// credential names a secret. The mesh's service for external ones is for servers alone, as in
// istiod.
func (in *Outbound) credential(name string) *tls.SdsSecretConfig {
	own := in.Client.Certificates
	return encode.External{Socket: own.Socket, Alone: !own.From.Served()}.Credential(name)
}

// show adds the proxy's own certificate, and reports whether anything says where it is.
func (in *Outbound) show(common *tls.CommonTlsContext, s *networking.ClientTLSSettings) bool {
	switch {
	case s.CredentialName != "":
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{in.credential(s.CredentialName)}
	case s.ClientCertificate == "" || s.PrivateKey == "":
		return false
	default:
		in.Client.Certificates.From.Show(common, s.ClientCertificate, s.PrivateKey)
	}
	return true
}

// trust says whom the proxy believes to be the server.
func (in *Outbound) trust(common *tls.CommonTlsContext, s *networking.ClientTLSSettings) {
	names := s.SubjectAltNames
	if len(names) == 0 && in.Service.Registry != kubernetes {
		names = in.Identities
	}
	skip := s.GetInsecureSkipVerify().GetValue()
	switch {
	case s.CredentialName != "" && skip:
	case s.CredentialName != "":
		encode.TrustSecret(common, check(names), in.credential(s.CredentialName+encode.RootsSuffix))
	case skip:
		common.ValidationContextType = &tls.CommonTlsContext_ValidationContext{ValidationContext: &tls.CertificateValidationContext{}}
	default:
		also := check(names)
		if s.CaCrl != "" {
			also.Crl = &core.DataSource{Specifier: &core.DataSource_Filename{Filename: s.CaCrl}}
		}
		in.Client.Certificates.From.Trust(common, also, cmp.Or(s.CaCertificates, encode.SystemRoots))
	}
}

// kubernetes is the registry whose services name their workloads' identities themselves.
const kubernetes = "Kubernetes"

// originParameters are those of the mesh for TLS that isn't its own.
func (in *Outbound) originParameters() *tls.TlsParameters {
	out := clientParameters()
	if d := in.Mesh.TLS; d != nil {
		out.CipherSuites, out.EcdhCurves = d.CipherSuites, d.EcdhCurves
	}
	return out
}
