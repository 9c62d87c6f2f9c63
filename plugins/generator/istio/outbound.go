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
	listener *incr.Func[listenerKey, []byte]
	virtual  *incr.Func[listener.Proxy, []byte]
	sets     *incr.Input[listenerSet, struct{}]
	inSet    *incr.Index[listenerSet, setListener, []byte]
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
	Bind                      listener.Bind
	HTTP                      bool
	Protocol, ClusterProtocol config.Protocol
	Route, Cluster            string
}

type listenerKey struct {
	Shape shape
	Proxy listener.Proxy
}

func (g *graph) addOutbound() {
	arrivals := incr.FlatMap(g.visible, "ports of hosts", samePointer[config.Service],
		func(_ *incr.Ctx, h host, s *config.Service) ([]incr.Item[arrival, *config.Service], error) {
			var out []incr.Item[arrival, *config.Service]
			for _, p := range s.Ports {
				protocol := config.ParseProtocol(p.Protocol)
				if protocol == config.UDP {
					continue
				}
				at := place{h.Scope, listener.BindFor(s, p.Number, protocol)}
				out = append(out, incr.Item[arrival, *config.Service]{Key: arrival{at, h.Host, p.Number}, Value: s})
			}
			return out, nil
		})
	byPlace := incr.NewIndex(arrivals, "ports at place", func(a arrival, _ *config.Service) []place { return []place{a.Place} })
	shapes := incr.Group(byPlace, "shape of listener", incr.Same[shape], shapeOf)
	g.outbound.listener = incr.NewFunc(g.Graph, "outbound listener", bytes.Equal, g.buildListener)
	g.outbound.virtual = incr.NewFunc(g.Graph, "virtualOutbound", bytes.Equal, func(c *incr.Ctx, p listener.Proxy) ([]byte, error) {
		return encode.Bytes(listener.BuildVirtualOutbound(g.outside(c), p)), nil
	})
	g.outbound.sets = incr.NewInput[listenerSet](g.Graph, "listener sets", incr.Same[struct{}])
	all := incr.Join(g.outbound.sets, shapes, "listeners of sets",
		func(s listenerSet, _ struct{}) []Scope { return []Scope{s.Scope} },
		func(p place, _ shape) []Scope { return []Scope{p.Scope} },
		bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[listenerSet, place], _ struct{}, s shape) ([]byte, error) {
			if b, ok := g.outbound.listener.Get(c, listenerKey{s, k.Left.Proxy}); ok {
				return b, nil
			}
			return nil, incr.Absent
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

// shapeOf is the listener that services make together. The oldest says what it is; those that don't fit are left out: connections
// can't be told apart.
func shapeOf(_ *incr.Ctx, at place, members []incr.Item[arrival, *config.Service]) (shape, error) {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b incr.Item[arrival, *config.Service]) int {
		return cmp.Or(config.Older(a.Value, b.Value), cmp.Compare(a.Key.Port, b.Key.Port))
	})
	out := shape{Bind: at.Bind}
	for i, m := range members {
		protocol := config.ParseProtocol(m.Value.Port(m.Key.Port).Protocol)
		if i == 0 || out.HTTP && out.Cluster == "" && protocol == config.Sniffed {
			out.add(m.Key, protocol)
		}
	}
	return out, nil
}

func (s *shape) add(a arrival, protocol config.Protocol) {
	name := cluster.Name{Port: a.Port, Host: a.Host}.String()
	if !s.HTTP && (protocol.IsHTTP() || protocol == config.Sniffed) {
		s.HTTP, s.Protocol = true, protocol
		s.Route = routeName(s.Bind, a, protocol)
	}
	if !protocol.IsHTTP() && s.Cluster == "" {
		s.Cluster, s.ClusterProtocol = name, protocol
	}
}

// routeName is the port's number, or HOST:PORT where the listener is one service's own and speaks what it likes.
func routeName(b listener.Bind, a arrival, protocol config.Protocol) string {
	if protocol == config.Sniffed && !b.Any() {
		return route.HostName(a.Host, a.Port)
	}
	return portName(b.Port)
}

func (g *graph) buildListener(c *incr.Ctx, k listenerKey) ([]byte, error) {
	return encode.Bytes(listener.BuildOutbound(listener.Outbound{
		Bind:            k.Shape.Bind,
		HTTP:            k.Shape.HTTP,
		Protocol:        k.Shape.Protocol,
		Route:           k.Shape.Route,
		Cluster:         k.Shape.Cluster,
		ClusterProtocol: k.Shape.ClusterProtocol,
		Outside:         g.outside(c),
		Proxy:           k.Proxy,
	})), nil
}
