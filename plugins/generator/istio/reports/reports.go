// Package reports finds the Telemetry that counts for a proxy, and what its listeners report then.
// What reports are is in telemetry.
package reports

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Reports are those of all proxies.
type Reports struct {
	tables     *tables.Tables
	settings   *mesh.Settings
	extensions *extensions.Extensions

	in     *incr.Index[string, string, tables.Row[*config.Telemetry]]
	mesh   *incr.Func[string, *meshv1.MeshConfig]
	report *incr.Func[reportKey, *telemetry.Reports]
}

// only is the key of functions that have one value.
const only = ""

// reportKey is what reports depend on: the resources, and the side.
type reportKey struct {
	Telemetry config.Keys
	Side      telemetry.Side
}

// New adds the reports to a graph.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, providers *provider.Providers, x *extensions.Extensions) *Reports {
	r := &Reports{tables: t, settings: settings, extensions: x}
	r.in = incr.NewIndex(r.tables.Telemetries, "telemetry by namespace", func(_ string, r tables.Row[*config.Telemetry]) []string {
		return []string{r.Value.Namespace}
	})
	r.mesh = mesh.Project(settings, "mesh for telemetry", telemetry.Mesh, func(a, b *meshv1.MeshConfig) bool { return proto.Equal(a, b) })
	r.report = incr.NewFunc(graph, "reports", (*telemetry.Reports).Equal, func(c *incr.Ctx, k reportKey) (*telemetry.Reports, error) {
		in := telemetry.Input{Mesh: r.mesh.Of(c, only), Side: k.Side, Find: func(service string) (string, bool) {
			return providers.Service(c, service)
		}}
		for key := range k.Telemetry.All() {
			if one, ok := t.Telemetries.Get(c, key); ok {
				in.Resources = append(in.Resources, one.Value.Spec)
			}
		}
		return telemetry.Build(in), nil
	})
	return r
}

// Of are the resources that count for a workload, the least specific first: the root namespace's
// own, its namespace's own, and those of its namespace that select it.
func (r *Reports) Of(c *incr.Ctx, namespace string, labels map[string]string) config.Keys {
	var out []string
	root := r.settings.Root(c)
	if root != namespace && root != "" {
		out = append(out, r.namespaceTelemetry(c, root)...)
	}
	out = append(out, r.namespaceTelemetry(c, namespace)...)
	for _, t := range r.telemetryIn(c, namespace) {
		if t.Selects(labels) {
			out = append(out, t.Key)
		}
	}
	return config.KeysOf(out)
}

// namespaceTelemetry is the oldest resource for a whole namespace.
func (r *Reports) namespaceTelemetry(c *incr.Ctx, namespace string) []string {
	for _, t := range r.telemetryIn(c, namespace) {
		if !t.Attached() {
			return []string{t.Key}
		}
	}
	return nil
}

// telemetryIn are the resources of a namespace, the oldest first.
func (r *Reports) telemetryIn(c *incr.Ctx, namespace string) []*config.Telemetry {
	var out []*config.Telemetry
	for _, i := range r.in.Of(c, namespace) {
		out = append(out, i.Value.Value)
	}
	slices.SortFunc(out, func(a, b *config.Telemetry) int { return a.Before(b.Meta) })
	return out
}

// Reporting is a proxy for building listeners of a side.
func (r *Reports) Reporting(c *incr.Ctx, p listener.Proxy, side telemetry.Side) listener.Reporting {
	out := listener.Reporting{Proxy: p, Reports: r.report.Of(c, reportKey{p.Telemetry, side})}
	if p.Extensions != "" {
		out.Extensions = r.extensions.List(c, p.Extensions, side == telemetry.Inbound, !p.Certificates.From.Served())
	}
	return out
}

// Tracing is what spans say about a proxy, if it makes any; reaches reports whether it has an
// outbound cluster. A proxy that isn't known to be an Envoy is told of collectors that it can't
// reach too, as istiod tells all of them.
func (r *Reports) Tracing(c *incr.Ctx, n *node.Node, reaches func(cluster string) bool, labels map[string]string, key config.Keys) listener.Tracing {
	var out listener.Tracing
	var unreachable []string
	for _, side := range sidesOf(n) {
		t := r.report.Of(c, reportKey{key, side}).Tracing
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
		if needed := t.NeededCluster(); needed != "" && n.IsEnvoy() && !reaches(needed) {
			unreachable = append(unreachable, needed)
		}
	}
	out.Unreachable = strings.Join(unreachable, ",")
	return out
}

// conventionalName is the name of the workload's service by OpenTelemetry's conventions for
// Kubernetes, as istiod reads them.
func conventionalName(n *node.Node, labels map[string]string) string {
	return cmp.Or(n.Metadata.Annotations["resource.opentelemetry.io/service.name"], labels["app.kubernetes.io/instance"], labels["app.kubernetes.io/name"],
		n.Metadata.Workload, n.Name, "unknown_service")
}

func sidesOf(n *node.Node) []telemetry.Side {
	if n.Type == node.Router {
		return []telemetry.Side{telemetry.Gateway}
	}
	return []telemetry.Side{telemetry.Outbound, telemetry.Inbound}
}
