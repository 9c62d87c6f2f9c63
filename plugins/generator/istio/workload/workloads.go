// Package workload is what is known of the workloads behind proxies: the pods and endpoints that
// registries have of them, the ports that services name, where they are, and how far they see into
// other networks.
package workload

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Workloads are the pods, endpoints and labels that registries have of proxies and of services.
type Workloads struct {
	tables    *tables.Tables
	dualStack bool

	ids       *incr.Func[string, []string]
	byService *incr.Func[string, []*endpoint.Endpoint]
	byAddress *incr.Index[string, string, tables.Row[*endpoint.Endpoint]]
}

// New adds them to a graph. dualStack: proxies with addresses of both families use both.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, dualStack bool) *Workloads {
	w := &Workloads{tables: t, dualStack: dualStack}
	byService := incr.NewIndex(t.Endpoints, "endpoints by service", func(_ string, r tables.Row[*endpoint.Endpoint]) []string {
		return []string{r.Value.ServiceKey()}
	})
	w.ids = incr.NewFunc(graph, "identities", slices.Equal, func(c *incr.Ctx, service string) ([]string, error) {
		domain := settings.Listeners(c).TrustDomain
		var out []string
		for _, e := range byService.Of(c, service) {
			if id := e.Value.Value.Identity(domain); id != "" {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		return slices.Compact(out), nil
	})
	w.byService = incr.NewFunc(graph, "endpoints of service", slices.Equal, func(c *incr.Ctx, service string) ([]*endpoint.Endpoint, error) {
		var out []*endpoint.Endpoint
		for _, e := range byService.Of(c, service) {
			out = append(out, e.Value.Value)
		}
		return out, nil
	})
	w.byAddress = incr.NewIndex(t.Endpoints, "endpoints by address", func(_ string, r tables.Row[*endpoint.Endpoint]) []string {
		return append([]string{r.Value.Address}, r.Value.MoreAddresses...)
	})
	return w
}

// Identities are those of the endpoints of a service, by its key.
func (w *Workloads) Identities(c *incr.Ctx, service string) []string {
	return w.ids.Of(c, service)
}

// Endpoints are the endpoints of a service, by its key.
func (w *Workloads) Endpoints(c *incr.Ctx, service string) []*endpoint.Endpoint {
	return w.byService.Of(c, service)
}

// At are the endpoints at an address.
func (w *Workloads) At(c *incr.Ctx, address string) []*endpoint.Endpoint {
	var out []*endpoint.Endpoint
	for _, e := range w.byAddress.Of(c, address) {
		out = append(out, e.Value.Value)
	}
	return out
}

// Labels are the labels of the proxy's pod, or those that a registry has for its address, with
// those that were set for the proxy, otherwise those that it says it has. Beside them stand those
// that follow from where it runs.
func (w *Workloads) Labels(c *incr.Ctx, n *node.Node) map[string]string {
	labels := n.Labels
	known := false
	if _, pod := w.pod(c, n); pod != nil {
		labels, known = pod.Labels, true
	} else if e := w.registered(c, n); e != nil {
		labels, known = e.Labels, true
	}
	if own := n.Metadata.StaticLabels; known && len(own) > 0 {
		all := maps.Clone(own)
		maps.Copy(all, labels)
		labels = all
	}
	return endpoint.Topology(labels, w.locality(c, n, labels), n.Metadata.ClusterID, n.Metadata.Network, n.Metadata.NodeName)
}

// registered is what a registry has at the proxy's address; nil without. A loopback address says
// nothing of who is there, and one in a cluster may be that of another pod by now.
func (w *Workloads) registered(c *incr.Ctx, n *node.Node) *endpoint.Endpoint {
	for _, a := range n.Addresses {
		if ip, err := netip.ParseAddr(a); err != nil || ip.IsLoopback() {
			continue
		}
		for _, ep := range w.At(c, a) {
			s, ok := w.tables.Services.Get(c, ep.ServiceKey())
			if ep.Namespace == n.Namespace && !(ok && s.Value.Registry == config.Kubernetes) {
				return ep
			}
		}
	}
	return nil
}

// locality is where a registry or the labels say that a proxy is, otherwise what it says itself.
func (w *Workloads) locality(c *incr.Ctx, n *node.Node, labels map[string]string) string {
	if _, pod := w.pod(c, n); pod != nil && pod.Locality != "" {
		return pod.Locality
	}
	if e := w.registered(c, n); e != nil && e.Locality != "" {
		return e.Locality
	}
	if l, ok := endpoint.LocalityOf(labels); ok {
		return l
	}
	return n.Locality
}

// Dialing is how the workload behind a proxy dials services.
func (w *Workloads) Dialing(n *node.Node) config.Dialing {
	return config.Dialing{
		Families: config.FamiliesOf(n.Addresses, w.dualStack),
		Resolver: n.Metadata.Resolver,
		Cluster:  n.Metadata.ClusterID,
	}
}

// only is the key of functions that have one value.
const only = ""

// sortedNames are the keys of a map, in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func portName(port uint32) string { return strconv.FormatUint(uint64(port), 10) }
