package workload

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// workloadAt is the workload with a key; nil without one.
func (w *Workloads) workloadAt(c *incr.Ctx, key string) *pb.Workload {
	r, ok := w.tables.Workloads.Get(c, key)
	if !ok {
		return nil
	}
	out := &pb.Workload{}
	if err := out.Unmarshal(r.Payload); err != nil {
		return nil // it was right when it came
	}
	return out
}

// pod is the pod that a proxy runs in, by the name and the namespace that it says; nil: no registry
// knows it. Workloads that aren't pods have no node.
func (w *Workloads) pod(c *incr.Ctx, n *node.Node) (key string, pod *pb.Workload) {
	if n.Metadata.Namespace == "" {
		return "", nil
	}
	key = n.Namespace + "/" + n.Name
	p := w.workloadAt(c, key)
	if id := n.Metadata.ClusterID; id != "" && (p == nil || p.Cluster != "" && p.Cluster != id) { // of a remote cluster
		key += "@" + id
		p = w.workloadAt(c, key)
	}
	if p == nil || p.Node == "" || n.Metadata.ClusterID != "" && p.Cluster != "" && n.Metadata.ClusterID != p.Cluster {
		return "", nil
	}
	return key, p
}
