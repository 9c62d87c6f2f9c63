package clusters

import (
	"bytes"
	"net"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// InboundKey is the targets (encoded) of a workload, or those that share one port of it.
type InboundKey struct {
	Targets string
	Ingress ingress.Key
	// Scope whose rules count; empty: that of the services' namespace.
	Scope    scope.Scope
	Families config.Families
	// SameCase is as Client has it.
	SameCase bool
	// Patches change them (patches.Keys).
	Patches string
}

// inbound are the clusters behind workloads' ports.
type inbound struct {
	from   *From
	behind *incr.Func[InboundKey, []byte]
}

// newInbound adds them to a graph, as a list.
func newInbound(graph *incr.Graph, from *From) *incr.Func[InboundKey, []sdk.Resource] {
	x := &inbound{from: from}
	x.behind = incr.NewFunc(graph, "inbound cluster", bytes.Equal, x.build)
	return patches.List[InboundKey]{
		Name:    "inbound clusters",
		Plain:   x.list,
		Patches: func(k *InboundKey) *string { return &k.Patches },
		Patch: func(c *incr.Ctx, keys string, k InboundKey, r sdk.Resource) ([]byte, bool) {
			return from.Patches.Set(c, keys).Cluster(networking.EnvoyFilter_SIDECAR_INBOUND, r.Name, x.hostsBehind(c, k, r.Name), r.Body)
		},
	}.Add(graph)
}

// list are the clusters behind a workload's ports.
func (x *inbound) list(c *incr.Ctx, k InboundKey) []sdk.Resource {
	if k.Ingress.Named() {
		return x.ingressClusters(c, k)
	}
	var out []sdk.Resource
	for _, group := range workload.ByPort(workload.DecodeTargets(k.Targets)) {
		key := k
		key.Targets, key.Patches = workload.EncodeTargets(group), ""
		if b, ok := x.behind.Get(c, key); ok {
			out = append(out, sdk.Resource{Name: inboundName(group[0]), Body: b})
		}
	}
	return out
}

func inboundName(t workload.Target) string { return cluster.InboundName(t.Target) }

// serviceNamed is a service as the metadata of clusters name it.
func serviceNamed(s *config.Service) cluster.Service {
	return cluster.Service{Host: s.Host, Name: s.Name, Namespace: s.Namespace, External: s.External}
}

func (x *inbound) build(c *incr.Ctx, k InboundKey) ([]byte, error) {
	var in cluster.Inbound
	var number uint32
	for _, t := range workload.DecodeTargets(k.Targets) {
		s, ok := x.from.Targets.Service(c, t.Service)
		if !ok || s.Value.Port(t.Number) == nil {
			continue
		}
		if len(in.Services) == 0 {
			in.Protocol, number = config.ParseProtocol(s.Value.Port(t.Number).Protocol), t.Number
			in.Redirect = cluster.Redirected(s.Value, t.Number)
		}
		in.Port = t.Target
		named := serviceNamed(s.Value)
		if t.Number == number && !slices.Contains(in.Services, named) { // others are at a port of another number
			in.Services = append(in.Services, named)
		}
	}
	if len(in.Services) == 0 {
		return nil, incr.Absent
	}
	x.limit(c, &in, k, workload.DecodeTargets(k.Targets))
	if x.from.Mesh.LocalInbound(c) {
		in.Endpoint = net.JoinHostPort(k.Families.Loopback()[0], strconv.FormatUint(uint64(in.Port), 10))
	}
	in.Stat = x.stat(c, workload.DecodeTargets(k.Targets)[0])
	return x.buildBehind(c, in, k), nil
}

// buildBehind makes the cluster behind a port, whoever names it, as the proxy and the mesh want it.
func (x *inbound) buildBehind(c *incr.Ctx, in cluster.Inbound, k InboundKey) []byte {
	in.Mesh, in.Source = x.from.Mesh.Clusters(c), k.Families.Behind()
	out := cluster.BuildInbound(in)
	if k.SameCase {
		cluster.SameCase(out, in.Protocol)
	}
	return encode.Bytes(out)
}

// stat names the cluster behind a workload's port in statistics; empty: Istio's name.
func (x *inbound) stat(c *incr.Ctx, t workload.Target) string {
	pattern := x.from.Mesh.Clusters(c).InboundStat
	s, ok := x.from.Targets.Service(c, t.Service)
	if pattern == "" || !ok {
		return ""
	}
	of := cluster.TowardsService(s.Value, t.Number, "")
	of.Target = t.Target
	return cluster.StatName(pattern, of)
}

// hostsBehind are the services that name a port of the workload. A port that a Sidecar names is of
// the first of them, or else of the Sidecar.
func (x *inbound) hostsBehind(c *incr.Ctx, k InboundKey, name string) []string {
	var out []string
	for _, t := range workload.DecodeTargets(k.Targets) {
		if s, ok := x.from.Targets.Service(c, t.Service); ok && inboundName(t) == name {
			out = append(out, s.Value.Host)
		}
	}
	if !k.Ingress.Named() {
		return out
	}
	if len(out) > 0 {
		return out[:1]
	}
	sidecar := x.from.Ingress.Sidecar(c, k.Ingress.Sidecar)
	return []string{sidecar.Name + "." + sidecar.Namespace}
}
