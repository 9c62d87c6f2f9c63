package endpoint

import (
	"math"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Horizon is how far clients see: behind it stand endpoints of other networks, for which the
// gateways of their networks stand. The zero value sees everything.
type Horizon struct {
	// Network that the client is in; empty: it doesn't say, and reaches itself only endpoints of
	// networks without gateways.
	Network string
	// Families of the client's addresses: it reaches gateways of those.
	Families config.Families
	// View are the networks whose endpoints the client wants, joined by commas; empty: all.
	View string
	// Networks of the mesh; nil without any.
	Networks *Networks
	// Found: endpoints that don't say which network they are in are looked for in those of the
	// mesh.
	Found bool
	// Local: the client reaches endpoints of its own Cluster alone, and those of which nobody knows
	// the cluster. Otherwise that is so of endpoints that say so, for clients that say where they
	// are.
	Local   bool
	Cluster string
	// OnNode: the client reaches endpoints on its own Node alone, whose name other clusters may
	// have, too.
	OnNode bool
	Node   string
}

// located is an endpoint with the network that it is in, if anybody knows.
func (h *Horizon) located(e *Endpoint) *Endpoint {
	if e.Network != "" || !h.Found || h.Networks == nil {
		return e
	}
	network := h.Networks.find(e)
	if network == "" {
		return e
	}
	out := *e
	out.Network = network
	return &out
}

// sees reports whether a client may have an endpoint, be it through a gateway.
func (h *Horizon) sees(e *Endpoint) bool {
	if h.OnNode && e.Node != h.Node {
		return false
	}
	if e.Cluster != "" && e.Cluster != h.Cluster && (h.Local || h.OnNode || e.SameCluster && h.Cluster != "") {
		return false
	}
	if h.View == "" && e.Address != "" {
		return true
	}
	if h.View != "" && e.Network != "" && !slices.Contains(strings.Split(h.View, ","), e.Network) {
		return false
	}
	return e.Address != "" || h.Networks.Several() && !h.near(e.Network)
}

// near reports whether a network is the client's own; an endpoint that says none is near.
func (h *Horizon) near(network string) bool { return network == "" || network == h.Network }

// splits reports whether there is anything behind the horizon.
func (h *Horizon) splits() bool { return h.Networks.Several() }

// split puts gateways in the place of endpoints that only they reach. Those that don't speak the
// mesh's mutual TLS can't be reached at all: gateways don't know whom to pass plain text to. Nor
// can Unix sockets: of what they are in, none knows the network, as istiod has it. What each
// address of the locality is goes into of.
func (h *Horizon) split(spec *Spec, l *endpointv3.LocalityLbEndpoints, of map[*endpointv3.LbEndpoint]*Endpoint) {
	weights := map[Gateway]uint32{}
	var out []*endpointv3.LbEndpoint
	for _, lb := range l.LbEndpoints {
		e := of[lb]
		weight := scaled(lb.GetLoadBalancingWeight().GetValue(), h.Networks.scale)
		gateways := h.Networks.towards(e.Network, e.Cluster)
		switch {
		case isSocket(e.Address):
		case h.near(e.Network) || len(gateways) == 0:
			if e.Address != "" {
				lb.LoadBalancingWeight = wrapperspb.UInt32(weight)
				out = append(out, lb)
			}
		case spec.mutual(e):
			reached := h.reached(gateways)
			for _, g := range reached {
				weights[g] += weight / uint32(len(reached))
			}
		}
	}
	for _, g := range sortedGateways(weights) {
		lb, e := g.endpoint(weights[g])
		of[lb] = e
		out = append(out, lb)
	}
	l.LbEndpoints, l.LoadBalancingWeight = out, nil
	if len(out) > 0 {
		l.LoadBalancingWeight = wrapperspb.UInt32(weightOf(out))
	}
}

// reached are the gateways that the client's addresses can dial.
func (h *Horizon) reached(gateways []Gateway) []Gateway {
	return slices.DeleteFunc(slices.Clone(gateways), func(g Gateway) bool { return !h.Families.Reach(g.Address) })
}

// scaled is a weight times a factor, at most what fits.
func scaled(weight, factor uint32) uint32 {
	switch {
	case weight == 0:
		return factor
	case weight >= math.MaxUint32/factor:
		return math.MaxUint32
	}
	return weight * factor
}

func sortedGateways(weights map[Gateway]uint32) []Gateway {
	out := make([]Gateway, 0, len(weights))
	for g := range weights {
		out = append(out, g)
	}
	slices.SortFunc(out, orderGateways)
	return out
}

// endpoint is the gateway in the place of endpoints.
func (g Gateway) endpoint(weight uint32) (*endpointv3.LbEndpoint, *Endpoint) {
	e := &Endpoint{Endpoint: pb.Endpoint{Address: g.Address, Port: g.Port, Network: g.Network, Cluster: g.Cluster}}
	return &endpointv3.LbEndpoint{
		HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(e)}},
		LoadBalancingWeight: wrapperspb.UInt32(max(weight, 1)),
		Metadata: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"istio":     encode.Struct(map[string]any{"workload": ";;;;" + g.Cluster}),
			socketMatch: encode.Struct(map[string]any{"tlsMode": "istio"}),
		}},
	}, e
}
