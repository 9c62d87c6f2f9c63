package istio

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// reports: which Telemetry counts for a proxy, and what its listeners report then.
type reports struct {
	telemetriesIn *incr.Index[string, string, tables.Row[*config.Telemetry]]
	telemetryMesh *incr.Func[string, *meshv1.MeshConfig]
	proxyDefaults *incr.Func[string, *meshv1.ProxyConfig]
	report        *incr.Func[reportKey, *telemetry.Reports]
}

// reportKey is what reports depend on: the resources, by key, joined by commas, and the side.
type reportKey struct {
	Telemetry string
	Side      telemetry.Side
}

// telemetrySeparator stands between keys of resources.
const telemetrySeparator = ","

func (g *graph) addReports() {
	g.telemetriesIn = incr.NewIndex(g.tables.Telemetries, "telemetry by namespace", func(_ string, r tables.Row[*config.Telemetry]) []string {
		return []string{r.Value.Namespace}
	})
	g.telemetryMesh = mesh.Project(g.mesh, "mesh for telemetry", telemetry.Mesh, func(a, b *meshv1.MeshConfig) bool { return proto.Equal(a, b) })
	g.proxyDefaults = mesh.Project(g.mesh, "mesh for proxies", (*mesh.Config).GetDefaultConfig,
		func(a, b *meshv1.ProxyConfig) bool { return proto.Equal(a, b) })
	g.report = incr.NewFunc(g.Graph, "reports", (*telemetry.Reports).Equal, func(c *incr.Ctx, k reportKey) (*telemetry.Reports, error) {
		in := telemetry.Input{Mesh: g.telemetryMesh.Of(c, only), Side: k.Side, Find: func(service string) (string, bool) {
			return g.providers.Service(c, service)
		}}
		for _, key := range strings.Split(k.Telemetry, telemetrySeparator) {
			if r, ok := g.tables.Telemetries.Get(c, key); ok {
				in.Resources = append(in.Resources, r.Value.Spec)
			}
		}
		return telemetry.Build(in), nil
	})
}

// telemetryOf are the resources that count for a workload, the least specific first: the root namespace's own, its namespace's own, and
// those of its namespace that select it.
func (g *graph) telemetryOf(c *incr.Ctx, namespace string, labels map[string]string) string {
	var out []string
	root := g.mesh.Root(c)
	if root != namespace && root != "" {
		out = append(out, g.namespaceTelemetry(c, root)...)
	}
	out = append(out, g.namespaceTelemetry(c, namespace)...)
	for _, t := range g.telemetryIn(c, namespace) {
		if t.Selects(labels) {
			out = append(out, t.Key)
		}
	}
	return strings.Join(out, telemetrySeparator)
}

// namespaceTelemetry is the oldest resource for a whole namespace.
func (g *graph) namespaceTelemetry(c *incr.Ctx, namespace string) []string {
	for _, t := range g.telemetryIn(c, namespace) {
		if !t.Attached() {
			return []string{t.Key}
		}
	}
	return nil
}

// telemetryIn are the resources of a namespace, the oldest first.
func (g *graph) telemetryIn(c *incr.Ctx, namespace string) []*config.Telemetry {
	var out []*config.Telemetry
	for _, i := range g.telemetriesIn.Of(c, namespace) {
		out = append(out, i.Value.Value)
	}
	slices.SortFunc(out, func(a, b *config.Telemetry) int { return a.Before(b.Meta) })
	return out
}

// reporting is a proxy for building listeners of a side.
func (g *graph) reporting(c *incr.Ctx, p listener.Proxy, side telemetry.Side) listener.Reporting {
	out := listener.Reporting{Proxy: p, Reports: g.report.Of(c, reportKey{p.Telemetry, side})}
	if p.Extensions != "" {
		out.Extensions = g.extensions.List(c, p.Extensions, side == telemetry.Inbound)
	}
	return out
}

// tracingOf is what spans say about a proxy, if it makes any. A proxy that isn't known to be an Envoy is told of collectors that it can't reach
// too, as istiod tells all of them.
func (g *graph) tracingOf(c *incr.Ctx, n *node.Node, scope Scope, labels map[string]string, key string) listener.Tracing {
	var out listener.Tracing
	var unreachable []string
	for _, side := range sidesOf(n) {
		t := g.report.Of(c, reportKey{key, side}).Tracing
		if t == nil {
			continue
		}
		out.Enabled = true
		out.Cluster, out.Mesh, out.Namespace = n.Metadata.ClusterID, n.Metadata.MeshID, n.Metadata.Namespace
		out.Service, out.Revision = labels["service.istio.io/canonical-name"], labels["service.istio.io/canonical-revision"]
		switch {
		case t.ByConvention():
			out.Conventional = conventionalName(n, labels)
		case t.NamesService():
			out.Name = n.Cluster
		}
		if needed := t.NeededCluster(); needed != "" && n.IsEnvoy() && !g.hasCluster(c, scope, needed) {
			unreachable = append(unreachable, needed)
		}
	}
	out.Unreachable = strings.Join(unreachable, ",")
	return out
}

// conventionalName is the name of the workload's service by OpenTelemetry's conventions for Kubernetes, as istiod reads them.
func conventionalName(n *node.Node, labels map[string]string) string {
	return cmp.Or(n.Metadata.Annotations["resource.opentelemetry.io/service.name"], labels["app.kubernetes.io/instance"], labels["app.kubernetes.io/name"],
		n.Metadata.Workload, n.Name, "unknown_service")
}

// hasCluster reports whether proxies of a scope have an outbound cluster.
func (g *graph) hasCluster(c *incr.Ctx, scope Scope, name string) bool {
	n, ok := cluster.ParseName(name)
	if !ok {
		return false
	}
	return slices.ContainsFunc(g.providers.ServicesOf(c, n.Host), func(s *config.Service) bool {
		return g.mesh.Sees(c, s, scope.Namespace) && s.Port(n.Port) != nil && g.reaches(c, scope, s)
	})
}

func sidesOf(n *node.Node) []telemetry.Side {
	if n.Type == node.Router {
		return []telemetry.Side{telemetry.Gateway}
	}
	return []telemetry.Side{telemetry.Outbound, telemetry.Inbound}
}

// settingsOf are a proxy's own settings, or the mesh's for those that have none.
func (g *graph) settingsOf(c *incr.Ctx, n *node.Node) listener.Settings {
	out := listener.Settings{
		Config:           g.encodedConfig(c, n),
		HTTP10:           n.Metadata.HTTP10,
		BalancedInbound:  n.Metadata.BalancedInbound,
		BalancedOutbound: n.Metadata.BalancedOutbound,
		Detection:        g.mesh.Listeners(c).Detection,
	}
	if t := n.Metadata.IdleTimeout; t != nil {
		out.IdleTimeout, out.Timed = *t, true
	}
	return out
}

// encodedConfig is what listeners heed of a proxy's settings.
func (g *graph) encodedConfig(c *incr.Ctx, n *node.Node) string {
	out := proto.CloneOf(g.proxyConfig(c, n))
	if s := g.connectionsOf(c, n); s != nil {
		out.ConnectionSettings = s
	}
	return listener.EncodeConfig(out)
}

// connectionsOf are limits and timeouts of a proxy's connections.
func (g *graph) connectionsOf(c *incr.Ctx, n *node.Node) *listener.ConnectionSettings {
	return listener.Connections(n.Metadata.ProxyConfig, g.proxyDefaults.Of(c, only), n.Type == node.Router)
}

// headersOf are the settings of a proxy that its routes heed.
func (g *graph) headersOf(c *incr.Ctx, n *node.Node) routeHeaders {
	h := g.proxyConfig(c, n).GetProxyHeaders()
	return routeHeaders{NoAttempts: h.GetAttemptCount().GetDisabled().GetValue(), ForwardedHost: h.GetXForwardedHost().GetEnabled().GetValue()}
}

// proxyConfig is the proxy's own where it says one, which then counts alone; otherwise the mesh's.
func (g *graph) proxyConfig(c *incr.Ctx, n *node.Node) *meshv1.ProxyConfig {
	return cmp.Or(n.Metadata.ProxyConfig, g.proxyDefaults.Of(c, only))
}
