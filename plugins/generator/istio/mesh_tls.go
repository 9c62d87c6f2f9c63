package istio

import (
	"strings"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func (g *graph) addTLSDefaults() {
	said := mesh.Project(g.mesh, "mesh for TLS", tlsDefaults, incr.Same[listener.TLSDefaults])
	g.tlsDefaults = incr.NewFunc(g.Graph, "TLS with others", incr.Same[listener.TLSDefaults], func(c *incr.Ctx, _ string) (listener.TLSDefaults, error) {
		out := said.Of(c, only)
		out.Secrets = g.secretCluster(c)
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

// secretCluster is the cluster of the first extension provider that serves secrets; empty without one, or where its service is unknown.
func (g *graph) secretCluster(c *incr.Ctx) string {
	for _, p := range g.extensions.Of(c, only) {
		if s := p.GetSds(); s != nil {
			if host, ok := g.serviceNamed(c, s.Service); ok {
				return cluster.Name{Host: host, Port: s.Port}.String()
			}
			return ""
		}
	}
	return ""
}
