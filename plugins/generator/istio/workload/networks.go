package workload

import (
	"slices"
	"strconv"
	"strings"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Networks are the mesh's: what its settings say, and services that are gateways of one. A mesh
// that has none pays nothing for them.
type Networks struct {
	workloads *Workloads
	mesh      *mesh.Settings
	// entries: declared endpoints are looked for in the mesh's networks.
	entries bool
	// known are the networks; nil without any.
	known *incr.Func[string, *endpoint.Networks]
	// nodeLocal: there are services whose clients stay on their node.
	nodeLocal *incr.Func[string, bool]
}

// Network is what counts of a client's own network.
type Network struct {
	Network, View string
	// Families of its addresses.
	Families config.Families
	// Cluster counts for services that clients of other clusters don't reach.
	Cluster string
	// Node counts for services that clients of other nodes don't reach, where there are any.
	Node string
}

const (
	NetworkLabel     = "topology.istio.io/network"
	GatewayPortLabel = "networking.istio.io/gatewayPort"
	// networkPort is where gateways of networks listen that don't say.
	networkPort = 15443
)

// NewNetworks adds them to a graph. entries: declared endpoints are looked for in the mesh's
// networks.
func NewNetworks(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, w *Workloads, entries bool) *Networks {
	n := &Networks{workloads: w, mesh: settings, entries: entries}
	outside := func(_ string, r tables.Row[*config.Service]) []string {
		return onlyIf(len(r.Value.ExternalAddresses) > 0)
	}
	// outer are services that are reached from outside, which gateways of networks are; outerThere
	// those of other clusters, each with its own labels.
	outer := incr.NewIndex(t.Services, "services reached from outside", outside)
	outerThere := incr.NewIndex(t.ClusterServices, "services of other clusters reached from outside", outside)
	others := incr.NewIndex(t.NetworkGateways, "gateways of networks", func(string, tables.Row[endpoint.Gateway]) []string { return []string{only} })
	onNodes := incr.NewIndex(t.Services, "services on nodes", func(_ string, r tables.Row[*config.Service]) []string { return onlyIf(r.Value.NodeLocal) })
	n.nodeLocal = incr.NewFunc(graph, "services on nodes exist", incr.Same[bool], func(c *incr.Ctx, _ string) (bool, error) {
		return len(onNodes.Of(c, only)) > 0, nil
	})
	n.known = incr.NewFunc(graph, "networks", (*endpoint.Networks).Equal, func(c *incr.Ctx, _ string) (*endpoint.Networks, error) {
		r, _ := t.Networks.Get(c, state.Networks)
		var found []endpoint.Gateway
		for _, i := range slices.Concat(outer.Of(c, only), outerThere.Of(c, only)) {
			for _, gateway := range NetworkGateways(i.Value.Value, r.Value) {
				if !slices.Contains(found, gateway) { // a service of another cluster alone has a row in both
					found = append(found, gateway)
				}
			}
		}
		for _, i := range others.Of(c, only) {
			found = append(found, i.Value.Value)
		}
		if len(r.Value.GetNetworks())+len(found) == 0 {
			return nil, nil
		}
		return endpoint.NewNetworks(r.Value, found), nil
	})
	return n
}

// NetworkGateways are the gateways that a service is: to the network that its label names, if it
// has the port, or to one whose settings name the service.
func NetworkGateways(s *config.Service, m *meshv1.MeshNetworks) []endpoint.Gateway {
	if id := s.Labels[NetworkLabel]; id != "" {
		port, err := strconv.ParseUint(s.Labels[GatewayPortLabel], 10, 16)
		if err != nil {
			port = networkPort
		}
		if s.Port(uint32(port)) == nil {
			return nil // as istiod
		}
		return gatewaysAt(s, id, uint32(port), "")
	}
	var out []endpoint.Gateway
	for _, id := range sortedNames(m.GetNetworks()) {
		n := m.Networks[id]
		for _, e := range n.GetEndpoints() {
			for _, g := range n.GetGateways() {
				if e.GetFromRegistry() != "" && g.GetRegistryServiceName() == s.Host {
					out = append(out, gatewaysAt(s, id, g.Port, e.GetFromRegistry())...)
				}
			}
		}
	}
	return out
}

// gatewaysAt are the addresses of a service from outside; of one cluster where that is given.
func gatewaysAt(s *config.Service, network string, port uint32, cluster string) []endpoint.Gateway {
	var out []endpoint.Gateway
	for _, id := range sortedNames(s.ExternalAddresses) {
		if cluster != "" && id != cluster {
			continue
		}
		at := port
		if p := s.ExternalPorts[id+"/"+portName(port)]; p != 0 {
			at = p
		}
		for a := range strings.SplitSeq(s.ExternalAddresses[id], ",") {
			out = append(out, endpoint.Gateway{Network: network, Cluster: id, Address: a, Port: at})
		}
	}
	return out
}

// Of is what counts of a proxy's own network.
func (n *Networks) Of(c *incr.Ctx, of *node.Node) Network {
	out := Network{View: strings.Join(of.Metadata.NetworkView, ","), Cluster: of.Metadata.ClusterID}
	if n.nodeLocal.Of(c, only) {
		out.Node = of.Metadata.NodeName
		if _, pod := n.workloads.pod(c, of); out.Node == "" && pod != nil {
			out.Node = pod.Node
		}
	}
	if n.known.Of(c, only) != nil {
		out.Network, out.Families = of.Metadata.Network, n.workloads.Dialing(of).Families
	}
	return out
}

// Horizon is how far clients see towards a service.
func (n *Networks) Horizon(c *incr.Ctx, from Network, s *config.Service) endpoint.Horizon {
	out := endpoint.Horizon{
		Network: from.Network, Families: from.Families, View: from.View, Networks: n.known.Of(c, only), Cluster: from.Cluster,
		Local: n.mesh.IsLocal(c, s.Host),
	}
	if s.NodeLocal {
		out.OnNode, out.Node = true, from.Node
	}
	if out.Networks != nil {
		out.Found = s.Registry != config.External || n.entries
	}
	return out
}

// Facts are what counts, for people who ask what splits views.
func (n Network) Facts(out map[string]string) {
	if n.Network != "" {
		out["network"] = n.Network
	}
	if n.View != "" {
		out["network view"] = n.View
	}
	if n.Cluster != "" {
		out["cluster"] = n.Cluster
	}
}
