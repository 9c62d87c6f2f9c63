package endpoint

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Gateway is where a network is entered from others.
type Gateway struct {
	Network string
	// Cluster whose endpoints are behind it; empty: of any.
	Cluster string
	Address string
	Port    uint32
}

// Networks are the mesh's networks (Istio API, MeshNetworks): which endpoints are where, and how
// each network is entered.
type Networks struct {
	// gateways by network, in order.
	gateways map[string][]Gateway
	ranges   []networkRange
	// registries are the networks of clusters.
	registries map[string]string
	// scale is what weights are multiplied by, so that each can be divided among gateways.
	scale uint32
}

type networkRange struct {
	prefix  netip.Prefix
	network string
}

// NewNetworks are the networks of the mesh's settings, and the gateways that were found besides.
// Gateways with host names don't count: nobody looks them up.
func NewNetworks(m *meshv1.MeshNetworks, found []Gateway) *Networks {
	out := &Networks{gateways: map[string][]Gateway{}, registries: map[string]string{}, scale: 1}
	all := slices.Clone(found)
	for _, id := range slices.Sorted(maps.Keys(m.GetNetworks())) {
		n := m.Networks[id]
		for _, e := range n.GetEndpoints() {
			out.add(id, e)
		}
		for _, g := range n.GetGateways() {
			if g.GetAddress() != "" {
				all = append(all, Gateway{Network: id, Address: g.GetAddress(), Port: g.Port})
			}
		}
	}
	// of ranges that overlap the widest counts
	slices.SortStableFunc(out.ranges, func(a, b networkRange) int { return cmp.Compare(a.prefix.Bits(), b.prefix.Bits()) })
	out.enter(all)
	return out
}

func (n *Networks) add(id string, e *meshv1.Network_NetworkEndpoints) {
	if p, err := netip.ParsePrefix(e.GetFromCidr()); err == nil {
		n.ranges = append(n.ranges, networkRange{p.Masked(), id})
	}
	if r := e.GetFromRegistry(); r != "" && n.registries[r] == "" {
		n.registries[r] = id
	}
}

// enter takes the gateways, each once.
func (n *Networks) enter(all []Gateway) {
	slices.SortFunc(all, orderGateways)
	clusters := map[Gateway]int{}
	for _, g := range slices.Compact(all) {
		if _, err := netip.ParseAddr(g.Address); err != nil {
			continue
		}
		n.gateways[g.Network] = append(n.gateways[g.Network], g)
		clusters[Gateway{Network: g.Network, Cluster: g.Cluster}]++
	}
	for _, list := range n.gateways {
		n.scale = leastCommonMultiple(n.scale, uint32(len(list)))
	}
	for _, count := range clusters {
		n.scale = leastCommonMultiple(n.scale, uint32(count))
	}
}

func orderGateways(a, b Gateway) int {
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Network, b.Network),
		cmp.Compare(a.Cluster, b.Cluster))
}

func leastCommonMultiple(a, b uint32) uint32 {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// Several reports whether any network is entered through a gateway.
func (n *Networks) Several() bool { return n != nil && len(n.gateways) > 0 }

// Equal reports whether both say the same.
func (n *Networks) Equal(o *Networks) bool {
	if n == nil || o == nil {
		return n == o
	}
	return maps.EqualFunc(n.gateways, o.gateways, slices.Equal) && slices.Equal(n.ranges, o.ranges) && maps.Equal(n.registries, o.registries)
}

// find is the network that the settings say an endpoint is in; empty if they don't.
func (n *Networks) find(e *Endpoint) string {
	if id := n.registries[e.Cluster]; id != "" {
		return id
	}
	a, err := netip.ParseAddr(e.Address)
	if err != nil {
		return ""
	}
	for _, r := range n.ranges {
		if r.prefix.Contains(a.Unmap()) {
			return r.network
		}
	}
	return ""
}

// towards are the gateways to endpoints of a cluster in a network: those of the cluster where there
// are any.
func (n *Networks) towards(network, cluster string) []Gateway {
	all := n.gateways[network]
	own := slices.DeleteFunc(slices.Clone(all), func(g Gateway) bool { return g.Cluster != cluster })
	if len(own) > 0 {
		return own
	}
	return all
}
