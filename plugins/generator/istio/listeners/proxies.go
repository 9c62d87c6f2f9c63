package listeners

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/policy"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/reports"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ProxiesFrom is what is known of proxies that listeners heed.
type ProxiesFrom struct {
	Mesh       *mesh.Settings
	Workloads  *workload.Workloads
	Scopes     *scope.Scopes
	Providers  *provider.Providers
	Policies   *policy.Policies
	Reports    *reports.Reports
	Extensions *extensions.Extensions
	// PersistentSessions stay with an endpoint.
	PersistentSessions bool
}

// Proxies say what listeners depend on of each proxy.
type Proxies struct{ from ProxiesFrom }

// NewProxies makes them from what is known.
func NewProxies(from ProxiesFrom) *Proxies { return &Proxies{from} }

// Of is that of a proxy, of a scope, whose workload has labels.
func (x *Proxies) Of(c *incr.Ctx, n *node.Node, s scope.Scope, labels map[string]string) listener.Proxy {
	out := listener.Proxy{
		MetadataExchange: n.Supports("istio.metadata_exchange"),
		ALPN:             n.Supports("istio.alpn"),
		Certificates:     n.Metadata.Server,
		Dialed:           n.Type == node.Sidecar && n.Metadata.Interception == node.None,
		Transparent:      n.Type == node.Sidecar && n.Metadata.Interception == node.TProxy,
		Dialing:          x.from.Workloads.Dialing(n),
		Ports:            x.portsFor(c, n),
		Paths:            x.from.Mesh.Listeners(c).Paths,
		Router:           n.Type == node.Router,
		Sessions:         x.from.PersistentSessions,
		Stats:            n.Supports("istio.stats"),
		Telemetry:        x.from.Reports.Of(c, n.Namespace, labels),
		Extensions:       x.from.Extensions.Of(c, n, labels),
		Settings:         x.from.Mesh.ForListeners(c, n),
	}
	out.Tracing = x.from.Reports.Tracing(c, n, func(name string) bool { return x.hasCluster(c, s, name) }, labels, out.Telemetry)
	if n.Type == node.Router {
		out.Policies = x.from.Policies.Of(c, n, labels)
	}
	return out
}

// portsFor are the ports that a proxy has for itself.
func (x *Proxies) portsFor(c *incr.Ctx, n *node.Node) listener.Ports {
	if n.Type == node.Router {
		return listener.Ports{}
	}
	out := x.from.Mesh.Listeners(c).Ports
	out.Status, out.Metrics, out.Unprivileged = n.Metadata.StatusPort, n.Metadata.PrometheusPort, n.Metadata.Unprivileged
	if p := n.Metadata.HTTPProxyPort; p != nil {
		out.Proxy = *p
	}
	return out
}

// hasCluster reports whether proxies of a scope have an outbound cluster.
func (x *Proxies) hasCluster(c *incr.Ctx, s scope.Scope, name string) bool {
	n, ok := cluster.ParseName(name)
	if !ok {
		return false
	}
	return slices.ContainsFunc(x.from.Providers.ServicesOf(c, n.Host), func(to *config.Service) bool {
		return x.from.Mesh.Sees(c, to, s.Namespace) && to.Port(n.Port) != nil && x.from.Scopes.Reaches(c, s, to)
	})
}
