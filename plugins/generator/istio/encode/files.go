package encode

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

const (
	// SystemRoots names the roots of the proxy's system, of which an agent knows where they are.
	SystemRoots = "system"
	// systemBundle is where they are without an agent: there Debian, Alpine and Envoy's own images
	// have them.
	systemBundle = "/etc/ssl/certs/ca-certificates.crt"
)

// Show lets a side show the certificate of two files: the agent, or who reads files in its place,
// reads them, or without one the proxy itself, once.
func (s Secrets) Show(out *tls.CommonTlsContext, chain, key string) {
	if s.Served() {
		out.TlsCertificateSdsSecretConfigs = append(out.TlsCertificateSdsSecretConfigs, s.file("file-cert:"+chain+"~"+key))
		return
	}
	out.TlsCertificates = append(out.TlsCertificates, &tls.TlsCertificate{CertificateChain: file(chain), PrivateKey: file(key)})
}

// Trust lets a side believe in the roots of a file, or in SystemRoots, and check what else is asked
// for.
func (s Secrets) Trust(out *tls.CommonTlsContext, check *tls.CertificateValidationContext, roots string) {
	if s.Served() {
		TrustSecret(out, check, s.file("file-root:"+roots))
		return
	}
	if roots == SystemRoots {
		roots = systemBundle
	}
	check.TrustedCa = file(roots)
	out.ValidationContextType = &tls.CommonTlsContext_ValidationContext{ValidationContext: check}
}

// file names a secret that the agent, or the server beside it, reads from files.
func (s Secrets) file(name string) *tls.SdsSecretConfig {
	if s == Reader {
		return secretFrom(readerCluster, name)
	}
	return secretFrom(agentCluster, name)
}

// TrustSecret lets a side believe in the roots of a secret, and check what else is asked for.
func TrustSecret(out *tls.CommonTlsContext, check *tls.CertificateValidationContext, roots *tls.SdsSecretConfig) {
	out.ValidationContextType = &tls.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tls.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         check,
			ValidationContextSdsSecretConfig: roots,
		},
	}
}

func file(name string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: name}}
}
