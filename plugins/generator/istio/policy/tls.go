package policy

import (
	"strings"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	meshv1 "istio.io/api/mesh/v1alpha1"

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
		Minimum: minimum(d.GetMinProtocolVersion()),
	}
}

// minimum is a version of TLS as Envoy numbers it, which has older ones, too. A version that is not
// known here is newer than those that are.
func minimum(v meshv1.MeshConfig_TLSConfig_TLSProtocol) tls.TlsParameters_TlsProtocol {
	switch v {
	case meshv1.MeshConfig_TLSConfig_TLS_AUTO:
		return tls.TlsParameters_TLS_AUTO
	case meshv1.MeshConfig_TLSConfig_TLSV1_2:
		return tls.TlsParameters_TLSv1_2
	default:
		return tls.TlsParameters_TLSv1_3
	}
}
