package istio

import (
	"encoding/json"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// workloadAt is the workload with a key; nil without one.
func (g *graph) workloadAt(c *incr.Ctx, key string) *pb.Workload {
	r, ok := g.tables.Workloads.Get(c, key)
	if !ok {
		return nil
	}
	out := &pb.Workload{}
	if err := out.Unmarshal(r.Payload); err != nil {
		return nil // it was right when it came
	}
	return out
}

// podOf is the pod that a proxy runs in, by the name and the namespace that it says; nil: no registry knows it. Workloads that aren't pods have no node.
func (g *graph) podOf(c *incr.Ctx, n *node.Node) (key string, pod *pb.Workload) {
	if n.Metadata.Namespace == "" {
		return "", nil
	}
	key = n.Namespace + "/" + n.Name
	w := g.workloadAt(c, key)
	if id := n.Metadata.ClusterID; id != "" && (w == nil || w.Cluster != "" && w.Cluster != id) { // of a remote cluster
		key += "@" + id
		w = g.workloadAt(c, key)
	}
	if w == nil || w.Node == "" || n.Metadata.ClusterID != "" && w.Cluster != "" && n.Metadata.ClusterID != w.Cluster {
		return "", nil
	}
	return key, w
}

// targetsOf asks for the ports of a proxy's workload.
func (g *graph) targetsOf(c *incr.Ctx, n *node.Node) []target {
	k := targetsKey{Addresses: strings.Join(n.Addresses, ","), Namespace: n.Namespace}
	if k.Pod, _ = g.podOf(c, n); k.Pod == "" && len(n.Labels) > 0 {
		said, err := json.Marshal(pb.Workload{Labels: n.Labels, Ports: n.Metadata.PodPorts, Cluster: n.Metadata.ClusterID})
		if err == nil {
			k.Said = string(said)
		}
	}
	return g.targets.Of(c, k)
}

// selectedTargets are the ports of the cluster's services that select a workload, ready or not.
func (g *graph) selectedTargets(c *incr.Ctx, k targetsKey) (out []foundTarget) {
	var w *pb.Workload
	switch {
	case k.Pod != "":
		if w = g.workloadAt(c, k.Pod); w == nil {
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
		for _, s := range g.servicesWith(c, labelOf(k.Namespace, label, value), w.Cluster) {
			if !istio.ServiceSelects(s.Selector, w.Labels) {
				continue
			}
			for i, p := range s.Ports {
				if port := portAt(w, p); port > 0 {
					out = append(out, foundTarget{target{s.Key, p.Number, port}, s, i})
				}
			}
		}
	}
	return out
}

// servicesWith are the services that select by a label, as a cluster has them; "": as the first one has them.
func (g *graph) servicesWith(c *incr.Ctx, label, cluster string) (out []*config.Service) {
	for _, m := range g.servicesByLabel.Of(c, label) {
		if s := m.Value.Value; cluster == "" || s.Cluster == "" || s.Cluster == cluster {
			out = append(out, s)
		}
	}
	for _, m := range g.servicesThere.Of(c, label) {
		if s := m.Value.Value; cluster != "" && s.Cluster == cluster {
			if first, ok := g.tables.Services.Get(c, sdk.ServiceKey(s.Namespace, s.Host)); ok && first.Value.Cluster != cluster {
				out = append(out, s)
			}
		}
	}
	return out
}

// serviceIn is a service as a cluster has it, if it is known to be otherwise there.
func (g *graph) serviceIn(c *incr.Ctx, key, cluster string) (tables.Row[*config.Service], bool) {
	s, ok := g.tables.Services.Get(c, key)
	if ok && cluster != "" && s.Value.Cluster != cluster {
		if there, ok := g.tables.ClusterServices.Get(c, key+"/"+cluster); ok && there.Value.Cluster == cluster {
			return there, true
		}
	}
	return s, ok
}

// targeted is the service of a target, by its key: that of a cluster, or of all.
func (g *graph) targeted(c *incr.Ctx, key string) (tables.Row[*config.Service], bool) {
	if s, ok := g.tables.Services.Get(c, key); ok {
		return s, true
	}
	return g.tables.ClusterServices.Get(c, key)
}

// portAt is where a workload serves a service's port; 0: it has none of the name that the service says.
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
