package policy

import (
	"strings"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func newTLSDefaults(graph *incr.Graph, settings *mesh.Settings, providers *provider.Providers) *incr.Func[string, listener.TLSDefaults] {
	said := mesh.Project(settings, "mesh for TLS", tlsDefaults, incr.Same[listener.TLSDefaults])
	return incr.NewFunc(graph, "TLS with others", incr.Same[listener.TLSDefaults], func(c *incr.Ctx, _ string) (listener.TLSDefaults, error) {
		out := said.Of(c, only)
		out.Secrets = providers.SecretCluster(c)
		return out, nil
	})
}

// tlsDefaults are the mesh's settings for TLS with others.
func tlsDefaults(m *mesh.Config) listener.TLSDefaults {
	d := m.GetTlsDefaults()
	return listener.TLSDefaults{
		Ciphers: strings.Join(d.GetCipherSuites(), ","),
		Curves:  strings.Join(d.GetEcdhCurves(), ","),
		Minimum: tls.TlsParameters_TlsProtocol(d.GetMinProtocolVersion()),
	}
}
