package istio

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// reports: which Telemetry counts for a proxy, and what its listeners report then.
type reports struct {
	telemetriesIn *incr.Index[string, string, row[*config.Telemetry]]
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
	g.telemetriesIn = incr.NewIndex(g.telemetries, "telemetry by namespace", func(_ string, r row[*config.Telemetry]) []string {
		return []string{r.value.Namespace}
	})
	g.telemetryMesh = project(g, "mesh for telemetry", telemetry.Mesh, func(a, b *meshv1.MeshConfig) bool { return proto.Equal(a, b) })
	g.proxyDefaults = project(g, "mesh for proxies", (*meshConfig).GetDefaultConfig,
		func(a, b *meshv1.ProxyConfig) bool { return proto.Equal(a, b) })
	g.report = incr.NewFunc(g.Graph, "reports", (*telemetry.Reports).Equal, func(c *incr.Ctx, k reportKey) (*telemetry.Reports, error) {
		in := telemetry.Input{Mesh: g.telemetryMesh.Of(c, only), Side: k.Side, Find: func(service string) (string, bool) {
			return g.serviceNamed(c, service)
		}}
		for _, key := range strings.Split(k.Telemetry, telemetrySeparator) {
			if r, ok := g.telemetries.Get(c, key); ok {
				in.Resources = append(in.Resources, r.value.Spec)
			}
		}
		return telemetry.Build(in), nil
	})
}

// telemetryOf are the resources that count for a workload, the least specific first: the root namespace's own, its namespace's own, and
// those of its namespace that select it.
func (g *graph) telemetryOf(c *incr.Ctx, namespace string, labels map[string]string) string {
	var out []string
	root := g.root.Of(c, only)
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
		out = append(out, i.Value.value)
	}
	slices.SortFunc(out, func(a, b *config.Telemetry) int { return a.Before(b.Meta) })
	return out
}

// reporting is a proxy for building listeners of a side.
func (g *graph) reporting(c *incr.Ctx, p listener.Proxy, side telemetry.Side) listener.Reporting {
	return listener.Reporting{Proxy: p, Reports: g.report.Of(c, reportKey{p.Telemetry, side})}
}

// tracingOf is what spans say about a proxy, if it makes any.
func (g *graph) tracingOf(c *incr.Ctx, n *node.Node, labels map[string]string, key string) listener.Tracing {
	var out listener.Tracing
	for _, side := range sidesOf(n) {
		t := g.report.Of(c, reportKey{key, side}).Tracing
		if t == nil {
			continue
		}
		out.Enabled = true
		out.Cluster, out.Mesh, out.Namespace = n.Metadata.ClusterID, n.Metadata.MeshID, n.Namespace
		out.Service, out.Revision = labels["service.istio.io/canonical-name"], labels["service.istio.io/canonical-revision"]
		if t.NamesService() {
			out.Name = n.Cluster
		}
	}
	return out
}

func sidesOf(n *node.Node) []telemetry.Side {
	if n.Type == node.Router {
		return []telemetry.Side{telemetry.Gateway}
	}
	return []telemetry.Side{telemetry.Outbound, telemetry.Inbound}
}

// settingsOf are a proxy's own settings, or the mesh's for those that have none.
func (g *graph) settingsOf(c *incr.Ctx, n *node.Node) listener.Settings {
	return listener.Settings{
		Config:           listener.EncodeConfig(g.proxyConfig(c, n)),
		HTTP10:           n.Metadata.HTTP10,
		IdleTimeout:      n.Metadata.IdleTimeout,
		BalancedInbound:  n.Metadata.BalancedInbound,
		BalancedOutbound: n.Metadata.BalancedOutbound,
		Detection:        g.listenerSettings.Of(c, only).detection,
	}
}

// proxyConfig is the proxy's own where it says one, which then counts alone; otherwise the mesh's.
func (g *graph) proxyConfig(c *incr.Ctx, n *node.Node) *meshv1.ProxyConfig {
	return cmp.Or(n.Metadata.ProxyConfig, g.proxyDefaults.Of(c, only))
}
