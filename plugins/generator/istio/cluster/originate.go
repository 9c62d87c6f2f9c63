package cluster

import (
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const (
	// systemRoots names the roots of the proxy's system.
	systemRoots = "system"
	// configMap names a credential that isn't secret.
	configMap = "configmap://"
)

// originate is TLS towards a server that isn't of the mesh, or that is asked for it.
func (in *Outbound) originate(c *clusterv3.Cluster, s *networking.ClientTLSSettings, http *httpOptions) {
	if s.CredentialName != "" && !in.hasCredential(s.CredentialName) {
		return
	}
	skip := s.GetInsecureSkipVerify().GetValue()
	if s.Sni == "" {
		http.upstream = &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: !skip && len(s.SubjectAltNames) == 0}
	}
	common := &tls.CommonTlsContext{TlsParams: in.originParameters()}
	if s.Mode == networking.ClientTLSSettings_MUTUAL {
		certificate := ownCertificate(s)
		if certificate == nil {
			return
		}
		common.TlsCertificateSdsSecretConfigs = []*tls.SdsSecretConfig{certificate}
	}
	in.trust(common, s)
	if in.Protocol.IsHTTP2() || http.upgrade {
		common.AlpnProtocols = []string{"h2"}
	}
	c.TransportSocket = socket(&tls.UpstreamTlsContext{Sni: s.Sni, CommonTlsContext: common})
}

// hasCredential reports whether the proxy may ask for a credential: a gateway may, and a sidecar where the rule is for its workload
// alone. Others would wait for what they don't get.
func (in *Outbound) hasCredential(name string) bool {
	return in.Client.Router || in.Selected || strings.HasPrefix(name, configMap)
}

// ownCertificate is what the proxy shows; nil where nothing says where it is.
func ownCertificate(s *networking.ClientTLSSettings) *tls.SdsSecretConfig {
	switch {
	case s.CredentialName != "":
		return encode.Credential(s.CredentialName)
	case s.ClientCertificate == "" || s.PrivateKey == "":
		return nil
	}
	return encode.FileSecret("file-cert:" + s.ClientCertificate + "~" + s.PrivateKey)
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
		common.ValidationContextType = validation(names, encode.Credential(s.CredentialName+encode.RootsSuffix))
	case skip:
		common.ValidationContextType = &tls.CommonTlsContext_ValidationContext{ValidationContext: &tls.CertificateValidationContext{}}
	default:
		roots := s.CaCertificates
		if roots == "" {
			roots = systemRoots
		}
		v := validation(names, encode.FileSecret("file-root:"+roots))
		if s.CaCrl != "" {
			v.CombinedValidationContext.DefaultValidationContext.Crl = &core.DataSource{Specifier: &core.DataSource_Filename{Filename: s.CaCrl}}
		}
		common.ValidationContextType = v
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
