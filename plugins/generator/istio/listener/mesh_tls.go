package listener

import (
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// MeshTLS is the mutual TLS of the mesh, as its settings say.
type MeshTLS struct {
	// TrustDomains whose workloads may come.
	TrustDomains []string
	// Only13 refuses versions before TLS 1.3; Ciphers are those for 1.2, nil: Istio's.
	Only13  bool
	Ciphers []string
}

func (m *MeshTLS) minimum() tls.TlsParameters_TlsProtocol {
	if m.Only13 {
		return tls.TlsParameters_TLSv1_3
	}
	return tls.TlsParameters_TLSv1_2
}

func (m *MeshTLS) ciphers() []string {
	if len(m.Ciphers) > 0 {
		return m.Ciphers
	}
	return ciphers()
}
