package istio

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outboundListeners: services of a scope gather at the addresses that clients dial; each such place is one listener.
type outboundListeners struct {
	virtual *incr.Func[listener.Proxy, []byte]
	sets    *incr.Input[listenerSet, struct{}]
	inSet   *incr.Index[listenerSet, setListener, []byte]
}

// place is where a listener of a scope stands.
type place struct {
	Scope Scope
	Bind  listener.Bind
}

// arrival is a service's port at a place.
type arrival struct {
	Place place
	Host  string
	Port  uint32
}

// listenerSet is the outbound listeners of a scope, as proxies that are equal for listeners get them.
type listenerSet struct {
	Scope Scope
	Proxy listener.Proxy
}

type setListener struct {
	Set  listenerSet
	Bind listener.Bind
}

// shape is all of a listener but the proxy.
type shape struct {
	HTTP     bool
	Protocol config.Protocol
	Route    string
	Chains   []listener.Chain
}

func sameShape(a, b shape) bool {
	return a.HTTP == b.HTTP && a.Protocol == b.Protocol && a.Route == b.Route && slices.Equal(a.Chains, b.Chains)
}

// caller is a service's port at a place.
type caller struct {
	service  *config.Service
	protocol config.Protocol
	chain    listener.Chain
}

func (g *graph) addOutbound() {
	arrivals := incr.FlatMap(g.visible, "ports of hosts", incr.Same[caller],
		func(_ *incr.Ctx, h host, s *config.Service) ([]incr.Item[arrival, caller], error) {
			return arrivalsOf(h, s), nil
		})
	byPlace := incr.NewIndex(arrivals, "ports at place", func(a arrival, _ caller) []place { return []place{a.Place} })
	shapes := incr.Group(byPlace, "shape of listener", sameShape, shapeOf)
	g.outbound.virtual = incr.NewFunc(g.Graph, "virtualOutbound", bytes.Equal, func(c *incr.Ctx, p listener.Proxy) ([]byte, error) {
		return encode.Bytes(listener.BuildVirtualOutbound(g.outside(c), p)), nil
	})
	g.outbound.sets = incr.NewInput[listenerSet](g.Graph, "listener sets", incr.Same[struct{}])
	all := incr.Join(g.outbound.sets, shapes, "listeners of sets",
		func(s listenerSet, _ struct{}) []Scope { return []Scope{s.Scope} },
		func(p place, _ shape) []Scope { return []Scope{p.Scope} },
		bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[listenerSet, place], _ struct{}, s shape) ([]byte, error) {
			return g.buildListener(c, k.Right.Bind, s, k.Left.Proxy), nil
		})
	named := incr.FlatMap(all, "named listeners", bytes.Equal,
		func(_ *incr.Ctx, k incr.Pair[listenerSet, place], b []byte) ([]incr.Item[setListener, []byte], error) {
			return []incr.Item[setListener, []byte]{{Key: setListener{k.Left, k.Right.Bind.Of(k.Left.Proxy)}, Value: b}}, nil
		})
	g.outbound.inSet = incr.NewIndex(named, "listeners of set", func(k setListener, _ []byte) []listenerSet { return []listenerSet{k.Set} })
}

// outside is the cluster for destinations that the mesh doesn't know.
func (g *graph) outside(c *incr.Ctx) string {
	if g.listenerSettings.Of(c, only).allowAny {
		return cluster.Passthrough
	}
	return cluster.BlackHole
}

func arrivalsOf(h host, s *config.Service) []incr.Item[arrival, caller] {
	var out []incr.Item[arrival, caller]
	for _, p := range s.Ports {
		protocol := config.ParseProtocol(p.Protocol)
		if protocol == config.UDP {
			continue
		}
		for _, a := range listener.Arrivals(s, p.Number, protocol) {
			k := arrival{place{h.Scope, a.Bind}, h.Host, p.Number}
			out = append(out, incr.Item[arrival, caller]{Key: k, Value: caller{s, protocol, a.Chain}})
		}
	}
	return out
}

// shapeOf is the listener that services make together. The oldest says what it is; those that don't fit are left out: their connections
// could not be told apart.
func shapeOf(_ *incr.Ctx, at place, members []incr.Item[arrival, caller]) (shape, error) {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b incr.Item[arrival, caller]) int {
		return cmp.Or(config.Older(a.Value.service, b.Value.service), cmp.Compare(a.Key.Port, b.Key.Port))
	})
	var out shape
	for i, m := range members {
		if i == 0 || out.fits(m.Value) {
			out.add(at.Bind, m.Key, m.Value)
		}
	}
	return out, nil
}

// fits reports whether a port can join: requests always can, connections where no other chain takes the same.
func (s *shape) fits(c caller) bool {
	if s.HTTP {
		return len(s.Chains) == 0 && c.protocol == config.Sniffed
	}
	return !c.protocol.IsHTTP() && c.protocol != config.Sniffed &&
		!slices.ContainsFunc(s.Chains, c.chain.Overlaps)
}

func (s *shape) add(b listener.Bind, a arrival, c caller) {
	if !s.HTTP && (c.protocol.IsHTTP() || c.protocol == config.Sniffed) {
		s.HTTP, s.Protocol = true, c.protocol
		s.Route = routeName(b, a, c.protocol)
	}
	if !c.protocol.IsHTTP() {
		s.Chains = append(s.Chains, c.chain)
	}
}

// routeName is the port's number, or HOST:PORT where the listener is one service's own and speaks what it likes.
func routeName(b listener.Bind, a arrival, protocol config.Protocol) string {
	if protocol == config.Sniffed && !b.Any() {
		return route.HostName(a.Host, a.Port)
	}
	return portName(b.Port)
}

func (g *graph) buildListener(c *incr.Ctx, b listener.Bind, s shape, p listener.Proxy) []byte {
	return encode.Bytes(listener.BuildOutbound(listener.Outbound{
		Bind:     b,
		HTTP:     s.HTTP,
		Protocol: s.Protocol,
		Route:    s.Route,
		Chains:   s.Chains,
		Outside:  g.outside(c),
		Proxy:    p,
	}))
}
