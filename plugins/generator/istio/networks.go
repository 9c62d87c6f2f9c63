package istio

import (
	"slices"
	"strconv"
	"strings"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// networks are the mesh's: what its settings say, and services that are gateways of one. A mesh that has none pays nothing for them.
type networks struct {
	// outer are services that are reached from outside, which gateways of networks are.
	outer *incr.Index[string, string, tables.Row[*config.Service]]
	// outerThere are those of other clusters, each with its own labels.
	outerThere *incr.Index[string, string, tables.Row[*config.Service]]
	// entries are gateways that are no services.
	entries *incr.Index[string, string, tables.Row[endpoint.Gateway]]
	// known are the networks; nil without any.
	known *incr.Func[string, *endpoint.Networks]
	// nodeLocal: there are services whose clients stay on their node.
	nodeLocal *incr.Func[string, bool]
}

// clientNetwork is what counts of a client's own network.
type clientNetwork struct {
	Network, View string
	// Families of its addresses.
	Families config.Families
	// Cluster counts for services that clients of other clusters don't reach.
	Cluster string
	// Node counts for services that clients of other nodes don't reach, where there are any.
	Node string
}

const (
	networkLabel     = "topology.istio.io/network"
	gatewayPortLabel = "networking.istio.io/gatewayPort"
	// networkPort is where gateways of networks listen that don't say.
	networkPort = 15443
)

func (g *graph) addNetworks() {
	outside := func(_ string, r tables.Row[*config.Service]) []string {
		return onlyIf(len(r.Value.ExternalAddresses) > 0)
	}
	g.outer = incr.NewIndex(g.tables.Services, "services reached from outside", outside)
	g.outerThere = incr.NewIndex(g.tables.ClusterServices, "services of other clusters reached from outside", outside)
	g.entries = incr.NewIndex(g.tables.NetworkGateways, "gateways of networks", func(string, tables.Row[endpoint.Gateway]) []string { return []string{only} })
	onNodes := incr.NewIndex(g.tables.Services, "services on nodes", func(_ string, r tables.Row[*config.Service]) []string { return onlyIf(r.Value.NodeLocal) })
	g.nodeLocal = incr.NewFunc(g.Graph, "services on nodes exist", incr.Same[bool], func(c *incr.Ctx, _ string) (bool, error) {
		return len(onNodes.Of(c, only)) > 0, nil
	})
	g.networks.known = incr.NewFunc(g.Graph, "networks", (*endpoint.Networks).Equal, func(c *incr.Ctx, _ string) (*endpoint.Networks, error) {
		r, _ := g.tables.Networks.Get(c, state.Networks)
		var found []endpoint.Gateway
		for _, i := range slices.Concat(g.outer.Of(c, only), g.outerThere.Of(c, only)) {
			for _, gateway := range networkGateways(i.Value.Value, r.Value) {
				if !slices.Contains(found, gateway) { // a service of another cluster alone has a row in both
					found = append(found, gateway)
				}
			}
		}
		for _, i := range g.entries.Of(c, only) {
			found = append(found, i.Value.Value)
		}
		if len(r.Value.GetNetworks())+len(found) == 0 {
			return nil, nil
		}
		return endpoint.NewNetworks(r.Value, found), nil
	})
}

// networkGateways are the gateways that a service is: to the network that its label names, if it has the port, or to one whose settings name the service.
func networkGateways(s *config.Service, m *meshv1.MeshNetworks) []endpoint.Gateway {
	if id := s.Labels[networkLabel]; id != "" {
		port, err := strconv.ParseUint(s.Labels[gatewayPortLabel], 10, 16)
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

// networkOf is what counts of a proxy's own network.
func (g *graph) networkOf(c *incr.Ctx, n *node.Node) clientNetwork {
	out := clientNetwork{View: strings.Join(n.Metadata.NetworkView, ","), Cluster: n.Metadata.ClusterID}
	if g.nodeLocal.Of(c, only) {
		out.Node = n.Metadata.NodeName
		if _, pod := g.podOf(c, n); out.Node == "" && pod != nil {
			out.Node = pod.Node
		}
	}
	if g.networks.known.Of(c, only) != nil {
		out.Network, out.Families = n.Metadata.Network, g.dialing(n).Families
	}
	return out
}

// horizon is how far clients see towards a service.
func (g *graph) horizon(c *incr.Ctx, n clientNetwork, s *config.Service) endpoint.Horizon {
	out := endpoint.Horizon{Network: n.Network, Families: n.Families, View: n.View, Networks: g.networks.known.Of(c, only), Cluster: n.Cluster, Local: g.mesh.IsLocal(c, s.Host)}
	if s.NodeLocal {
		out.OnNode, out.Node = true, n.Node
	}
	if out.Networks != nil {
		out.Found = s.Registry != config.External || g.entryNetworks
	}
	return out
}

func (n clientNetwork) facts(out map[string]string) {
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
