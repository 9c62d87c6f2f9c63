package encode

import (
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Certificates are what a proxy shows and trusts on one side: the workload's, or files that stand
// in their place (node metadata TLS_CLIENT_… and TLS_SERVER_…).
type Certificates struct {
	// From is where the workload's are, and who reads files.
	From Secrets
	// Paths of the files.
	Chain, Key, Root string
	// Socket: the proxy has a socket of its own for credentials called sds://NAME.
	Socket bool
}

// Any reports whether there is something to show.
func (c Certificates) Any() bool { return c.From.Any() || c.files() }

func (c Certificates) files() bool { return c.Chain != "" && c.Key != "" }

// Show lets a side show what is its own.
func (c Certificates) Show(out *tls.CommonTlsContext) {
	if c.files() {
		c.From.Show(out, c.Chain, c.Key)
		return
	}
	out.TlsCertificateSdsSecretConfigs = append(out.TlsCertificateSdsSecretConfigs, c.From.Workload(WorkloadCertificate))
}

// Trust lets a side believe in the mesh's roots, or those of the file, and check what else is asked
// for.
func (c Certificates) Trust(out *tls.CommonTlsContext, check *tls.CertificateValidationContext) {
	if c.Root != "" {
		c.From.Trust(out, check, c.Root)
		return
	}
	TrustSecret(out, check, c.From.Workload(WorkloadRoots))
}
