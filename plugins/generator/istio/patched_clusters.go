package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// patchedClusterKey names an outbound cluster and the patches that change it.
type patchedClusterKey struct {
	Patches, Name string
	Cluster       clusterKey
}

// patchedCluster is an outbound cluster after patches; false where there is none, or where a patch removes it.
func (g *graph) patchedCluster(c *incr.Ctx, patches, name string, k clusterKey) ([]byte, bool) {
	if patches == "" {
		return g.cluster.Get(c, k)
	}
	return g.patched.Get(c, patchedClusterKey{patches, name, k})
}

func (g *graph) buildPatchedCluster(c *incr.Ctx, k patchedClusterKey) ([]byte, error) {
	body, ok := g.cluster.Get(c, k.Cluster)
	if !ok {
		return nil, incr.Absent
	}
	body, ok = g.patches.Set(c, k.Patches).Cluster(patches.Side(k.Cluster.Client.Router), k.Name, nil, body)
	if !ok {
		return nil, incr.Absent
	}
	return body, nil
}

// sideOf is the side that a cluster without a service is for.
func sideOf(router bool, name string) envoyfilter.Context {
	if name == cluster.InboundPassthrough {
		return networking.EnvoyFilter_SIDECAR_INBOUND
	}
	return patches.Side(router)
}

// hostsBehind are the services that name a port of the workload. A port that a Sidecar names is of the first of them, or else of the Sidecar.
func (g *graph) hostsBehind(c *incr.Ctx, k inboundClusterKey, name string) []string {
	var out []string
	for _, t := range workload.DecodeTargets(k.Targets) {
		if s, ok := g.targets.Service(c, t.Service); ok && inboundName(t) == name {
			out = append(out, s.Value.Host)
		}
	}
	if !k.Ingress.Named() {
		return out
	}
	if len(out) > 0 {
		return out[:1]
	}
	sidecar := g.ingress.Sidecar(c, k.Ingress.Sidecar)
	return []string{sidecar.Name + "." + sidecar.Namespace}
}
