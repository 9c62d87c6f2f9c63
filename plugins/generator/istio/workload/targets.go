package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// targetsKey is a workload's addresses (joined by commas) and namespace, and who it is for the
// services of a cluster: a pod by its key, or labels and ports (as JSON) that a proxy says of
// itself whose pod isn't known.
type targetsKey struct {
	Addresses, Namespace string
	Pod, Said            string
}

// Target is a port of a workload that a service names.
type Target struct {
	// Service is its key, NAMESPACE/HOST, followed by /CLUSTER where it is what another cluster has
	// of it.
	Service string
	// Number is the service's port, Target the workload's.
	Number, Target uint32
}

// EncodeTargets writes targets as a part of a view's key; DecodeTargets reads them.
func EncodeTargets(list []Target) string {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = fmt.Sprintf("%s:%d>%d", t.Service, t.Number, t.Target)
	}
	return strings.Join(parts, " ")
}

// DecodeTargets reads what EncodeTargets wrote.
func DecodeTargets(s string) []Target {
	var out []Target
	for _, part := range strings.Fields(s) {
		i := strings.LastIndex(part, ":")
		number, port, _ := strings.Cut(part[i+1:], ">")
		n, _ := strconv.ParseUint(number, 10, 32)
		p, _ := strconv.ParseUint(port, 10, 32)
		out = append(out, Target{Service: part[:i], Number: uint32(n), Target: uint32(p)})
	}
	return out
}

// ByPort groups targets by the workload's port, in the order of ports. The first service of each
// counts.
func ByPort(list []Target) [][]Target {
	out := map[uint32][]Target{}
	var ports []uint32
	for _, t := range list {
		if out[t.Target] == nil {
			ports = append(ports, t.Target)
		}
		out[t.Target] = append(out[t.Target], t)
	}
	slices.Sort(ports)
	groups := make([][]Target, len(ports))
	for i, p := range ports {
		groups[i] = out[p]
	}
	return groups
}

// Targets are the ports of workloads that services name.
type Targets struct {
	tables    *tables.Tables
	workloads *Workloads
	// byLabel are a cluster's services that select workloads, by one of the labels that they ask
	// for; there are the same as other clusters have them.
	byLabel, there *incr.Index[string, string, tables.Row[*config.Service]]
	found          *incr.Func[targetsKey, []Target]
	// datagrams are those for UDP alone.
	datagrams *incr.Func[targetsKey, []Target]
}

// NewTargets adds them to a graph.
func NewTargets(graph *incr.Graph, rows *tables.Tables, w *Workloads) *Targets {
	t := &Targets{tables: rows, workloads: w}
	byLabel := func(_ string, r tables.Row[*config.Service]) []string {
		if s := r.Value; s.Registry == config.Kubernetes && len(s.Selector) > 0 {
			k := slices.Min(slices.Collect(maps.Keys(s.Selector)))
			return []string{labelOf(s.Namespace, k, s.Selector[k])}
		}
		return nil
	}
	t.byLabel = incr.NewIndex(rows.Services, "services by a label that they select", byLabel)
	t.there = incr.NewIndex(rows.ClusterServices, "services of other clusters by a label that they select", byLabel)
	t.found = incr.NewFunc(graph, "targets of workload", slices.Equal, func(c *incr.Ctx, k targetsKey) ([]Target, error) {
		return targetsAmong(t.findTargets(c, k)), nil
	})
	t.datagrams = incr.NewFunc(graph, "targets of workload for datagrams", slices.Equal, func(c *incr.Ctx, k targetsKey) ([]Target, error) {
		return targetsAmong(slices.DeleteFunc(t.findTargets(c, k), func(f foundTarget) bool { return !f.datagrams })), nil
	})
	return t
}

type foundTarget struct {
	Target
	service *config.Service
	place   int
	// datagrams: the service's port is for UDP.
	datagrams bool
}

// isDatagrams reports whether a service's port is for UDP.
func isDatagrams(p *pb.Port) bool { return config.ParseProtocol(p.Protocol) == config.UDP }

// isEntry reports whether an endpoint of a cluster's service is a WorkloadEntry: it has a name and
// runs on no node.
func isEntry(e *endpoint.Endpoint) bool { return e.Workload != "" && e.Node == "" }

// findTargets lists what services of the workload's own namespace say of its addresses, the oldest
// service first.
func (t *Targets) findTargets(c *incr.Ctx, k targetsKey) []foundTarget {
	var all []foundTarget
	selected := t.selectedTargets(c, k)
	for _, address := range strings.Split(k.Addresses, ",") {
		for _, ep := range t.workloads.At(c, address) {
			s, ok := t.serviceIn(c, ep.ServiceKey(), ep.Cluster)
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
			datagrams := slices.ContainsFunc(s.Value.Ports, func(p *pb.Port) bool {
				return p.Number == ep.ServicePort && p.Name == ep.PortName && isDatagrams(p)
			})
			all = append(all, foundTarget{Target{s.Value.Key, ep.ServicePort, ep.Port}, s.Value, place, datagrams})
		}
	}
	all = append(all, selected...)
	slices.SortFunc(all, func(a, b foundTarget) int {
		return cmp.Or(config.Older(a.service, b.service), cmp.Compare(a.place, b.place), cmp.Compare(a.Target.Target, b.Target.Target))
	})
	return all
}

// targetsAmong are those of a list that services have, each once.
func targetsAmong(all []foundTarget) (out []Target) {
	for _, f := range all {
		if f.place >= 0 && !slices.Contains(out, f.Target) {
			out = append(out, f.Target)
		}
	}
	return out
}

// Of asks for the ports of a proxy's workload.
func (t *Targets) Of(c *incr.Ctx, n *node.Node) []Target { return t.found.Of(c, t.keyOf(c, n)) }

// Datagrams are those of them that are for UDP.
func (t *Targets) Datagrams(c *incr.Ctx, n *node.Node) []Target {
	return t.datagrams.Of(c, t.keyOf(c, n))
}

func (t *Targets) keyOf(c *incr.Ctx, n *node.Node) targetsKey {
	k := targetsKey{Addresses: strings.Join(n.Addresses, ","), Namespace: n.Namespace}
	if k.Pod, _ = t.workloads.pod(c, n); k.Pod == "" && len(n.Labels) > 0 {
		said, err := json.Marshal(pb.Workload{Labels: n.Labels, Ports: n.Metadata.PodPorts, Cluster: n.Metadata.ClusterID})
		if err == nil {
			k.Said = string(said)
		}
	}
	return k
}

// selectedTargets are the ports of the cluster's services that select a workload, ready or not.
func (t *Targets) selectedTargets(c *incr.Ctx, k targetsKey) (out []foundTarget) {
	var w *pb.Workload
	switch {
	case k.Pod != "":
		if w = t.workloads.workloadAt(c, k.Pod); w == nil {
			return nil
		}
	case k.Said != "":
		w = &pb.Workload{}
		if json.Unmarshal([]byte(k.Said), w) != nil {
			return nil
		}
	default:
		return nil
	}
	for label, value := range w.Labels {
		for _, s := range t.servicesWith(c, labelOf(k.Namespace, label, value), w.Cluster) {
			if !istio.ServiceSelects(s.Selector, w.Labels) {
				continue
			}
			for i, p := range s.Ports {
				if port := portAt(w, p); port > 0 {
					out = append(out, foundTarget{Target{s.Key, p.Number, port}, s, i, isDatagrams(p)})
				}
			}
		}
	}
	return out
}

// servicesWith are the services that select by a label, as a cluster has them; "": as the first one
// has them.
func (t *Targets) servicesWith(c *incr.Ctx, label, cluster string) (out []*config.Service) {
	for _, m := range t.byLabel.Of(c, label) {
		if s := m.Value.Value; cluster == "" || s.Cluster == "" || s.Cluster == cluster {
			out = append(out, s)
		}
	}
	for _, m := range t.there.Of(c, label) {
		if s := m.Value.Value; cluster != "" && s.Cluster == cluster {
			if first, ok := t.tables.Services.Get(c, sdk.ServiceKey(s.Namespace, s.Host)); ok && first.Value.Cluster != cluster {
				out = append(out, s)
			}
		}
	}
	return out
}

// serviceIn is a service as a cluster has it, if it is known to be otherwise there.
func (t *Targets) serviceIn(c *incr.Ctx, key, cluster string) (tables.Row[*config.Service], bool) {
	s, ok := t.tables.Services.Get(c, key)
	if ok && cluster != "" && s.Value.Cluster != cluster {
		if there, ok := t.tables.ClusterServices.Get(c, key+"/"+cluster); ok && there.Value.Cluster == cluster {
			return there, true
		}
	}
	return s, ok
}

// Service is the service of a target, by its key: that of a cluster, or of all.
func (t *Targets) Service(c *incr.Ctx, key string) (tables.Row[*config.Service], bool) {
	if s, ok := t.tables.Services.Get(c, key); ok {
		return s, true
	}
	return t.tables.ClusterServices.Get(c, key)
}

// portAt is where a workload serves a service's port; 0: it has none of the name that the service
// says.
func portAt(w *pb.Workload, p *pb.Port) uint32 {
	switch {
	case p.TargetName != "":
		return w.Ports[p.TargetName]
	case p.Target > 0:
		return p.Target
	}
	return p.Number
}

func labelOf(namespace, key, value string) string { return namespace + "/" + key + "=" + value }
