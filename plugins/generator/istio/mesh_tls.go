package istio

import (
	"strings"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
)

// tlsDefaults are the mesh's settings for TLS with others.
func tlsDefaults(m *meshConfig) listener.TLSDefaults {
	d := m.GetTlsDefaults()
	return listener.TLSDefaults{
		Ciphers: strings.Join(d.GetCipherSuites(), ","),
		Curves:  strings.Join(d.GetEcdhCurves(), ","),
		Minimum: tls.TlsParameters_TlsProtocol(d.GetMinProtocolVersion()),
	}
}
