package istio

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// targetsKey is a workload's addresses (joined by commas) and namespace, and who it is for the services of a cluster: a pod by its key, or labels and ports
// (as JSON) that a proxy says of itself whose pod isn't known.
type targetsKey struct {
	Addresses, Namespace string
	Pod, Said            string
}

// target is a port of a workload that a service names.
type target struct {
	// Service is its key, NAMESPACE/HOST, followed by /CLUSTER where it is what another cluster has of it.
	Service string
	// Number is the service's port, Target the workload's.
	Number, Target uint32
}

// encodeTargets writes targets as a part of a view's key; decodeTargets reads them.
func encodeTargets(list []target) string {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = fmt.Sprintf("%s:%d>%d", t.Service, t.Number, t.Target)
	}
	return strings.Join(parts, " ")
}

func decodeTargets(s string) []target {
	var out []target
	for _, part := range strings.Fields(s) {
		i := strings.LastIndex(part, ":")
		number, port, _ := strings.Cut(part[i+1:], ">")
		n, _ := strconv.ParseUint(number, 10, 32)
		p, _ := strconv.ParseUint(port, 10, 32)
		out = append(out, target{Service: part[:i], Number: uint32(n), Target: uint32(p)})
	}
	return out
}

// byPort groups targets by the workload's port, in the order of ports. The first service of each counts.
func byPort(list []target) [][]target {
	out := map[uint32][]target{}
	var ports []uint32
	for _, t := range list {
		if out[t.Target] == nil {
			ports = append(ports, t.Target)
		}
		out[t.Target] = append(out[t.Target], t)
	}
	slices.Sort(ports)
	groups := make([][]target, len(ports))
	for i, p := range ports {
		groups[i] = out[p]
	}
	return groups
}

func (g *graph) addTargets() {
	byService := incr.NewIndex(g.tables.Endpoints, "endpoints by service", func(_ string, r tables.Row[*endpoint.Endpoint]) []string {
		return []string{r.Value.ServiceKey()}
	})
	g.identities = incr.NewFunc(g.Graph, "identities", slices.Equal, func(c *incr.Ctx, service string) ([]string, error) {
		domain := g.mesh.Listeners(c).TrustDomain
		var out []string
		for _, e := range byService.Of(c, service) {
			if id := e.Value.Value.Identity(domain); id != "" {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		return slices.Compact(out), nil
	})
	g.endpointsOf = incr.NewFunc(g.Graph, "endpoints of service", slices.Equal, func(c *incr.Ctx, service string) ([]*endpoint.Endpoint, error) {
		var out []*endpoint.Endpoint
		for _, e := range byService.Of(c, service) {
			out = append(out, e.Value.Value)
		}
		return out, nil
	})
	g.atAddress = incr.NewIndex(g.tables.Endpoints, "endpoints by address", func(_ string, r tables.Row[*endpoint.Endpoint]) []string {
		return append([]string{r.Value.Address}, r.Value.MoreAddresses...)
	})
	byLabel := func(_ string, r tables.Row[*config.Service]) []string {
		if s := r.Value; s.Registry == config.Kubernetes && len(s.Selector) > 0 {
			k := slices.Min(slices.Collect(maps.Keys(s.Selector)))
			return []string{labelOf(s.Namespace, k, s.Selector[k])}
		}
		return nil
	}
	g.servicesByLabel = incr.NewIndex(g.tables.Services, "services by a label that they select", byLabel)
	g.servicesThere = incr.NewIndex(g.tables.ClusterServices, "services of other clusters by a label that they select", byLabel)
	g.targets = incr.NewFunc(g.Graph, "targets of workload", slices.Equal, g.findTargets)
}

type foundTarget struct {
	target
	service *config.Service
	place   int
}

// isEntry reports whether an endpoint of a cluster's service is a WorkloadEntry: it has a name and runs on no node.
func isEntry(e *endpoint.Endpoint) bool { return e.Workload != "" && e.Node == "" }

// findTargets lists what services of the workload's own namespace say of its addresses, the oldest service first.
func (g *graph) findTargets(c *incr.Ctx, k targetsKey) ([]target, error) {
	var all []foundTarget
	selected := g.selectedTargets(c, k)
	for _, address := range strings.Split(k.Addresses, ",") {
		for _, e := range g.atAddress.Of(c, address) {
			ep := e.Value.Value
			s, ok := g.serviceIn(c, ep.ServiceKey(), ep.Cluster)
			if !ok || ep.Namespace != k.Namespace {
				continue
			}
			switch {
			case s.Value.Registry != config.Kubernetes:
			case k.Pod == "" && isEntry(ep):
				selected = nil // it says its ports itself
			case k.Pod == "" || len(selected) > 0:
				continue // selectors say more than who is ready, and an address may be that of another pod by now
			}
			place := slices.IndexFunc(s.Value.Ports, func(p *pb.Port) bool { return p.Number == ep.ServicePort })
			all = append(all, foundTarget{target{s.Value.Key, ep.ServicePort, ep.Port}, s.Value, place})
		}
	}
	all = append(all, selected...)
	slices.SortFunc(all, func(a, b foundTarget) int {
		return cmp.Or(config.Older(a.service, b.service), cmp.Compare(a.place, b.place), cmp.Compare(a.Target, b.Target))
	})
	var out []target
	for _, f := range all {
		if f.place >= 0 && !slices.Contains(out, f.target) {
			out = append(out, f.target)
		}
	}
	return out, nil
}
