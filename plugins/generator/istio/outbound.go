package istio

import (
	"bytes"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// outboundListeners: services of a scope gather at the addresses that clients dial; each such place is one listener.
type outboundListeners struct {
	virtual *incr.Func[virtualKey, []byte]
	sets    *incr.Input[listenerSet, struct{}]
	inSet   *incr.Index[listenerSet, setListener, []byte]
}

// virtualKey is what virtualOutbound depends on.
type virtualKey struct {
	Proxy   listener.Proxy
	Outside string
}

// place is where a listener of a scope stands.
type place struct {
	Dialer dialer
	Bind   listener.Bind
}

// arrival is a service's port at a place.
type arrival struct {
	Place place
	Host  string
	Port  uint32
}

// everywhere reports whether the place takes connections to every address, as the proxy dials them: the other family's "any" is an address like others.
func (a arrival) everywhere() bool {
	return a.Place.Bind.Address == a.Place.Dialer.How.Families.Any()[0]
}

// listenerSet is the outbound listeners of a scope, as proxies that are equal for listeners get them.
type listenerSet struct {
	Scope scope.Scope
	Proxy listener.Proxy
	// Self is the proxy's own address where some headless service has it.
	Self string
	// Selections are the source selectors of routes for connections that the proxy answers.
	Selections string
	// Patches change them (patches.Keys).
	Patches string
}

func (s listenerSet) dialer() dialer {
	return dialer{s.Scope, listener.Dialer{Dialing: s.Proxy.Dialing, Dialed: s.Proxy.Dialed, Ports: s.Proxy.Ports}, s.Self, s.Selections}
}

type setListener struct {
	Set  listenerSet
	Bind listener.Bind
}

func (g *graph) addOutbound() {
	g.outbound.sets = incr.NewInput[listenerSet](g.Graph, "listener sets", incr.Same[struct{}])
	arrivals := g.addArrivals(g.outbound.sets)
	byPlace := incr.NewIndex(arrivals, "ports at place", func(a arrival, _ caller) []place { return []place{a.Place} })
	shapes := incr.Group(byPlace, "shape of listener", sameShape, shapeOf)
	g.outbound.virtual = incr.NewFunc(g.Graph, "virtualOutbound", bytes.Equal, func(c *incr.Ctx, k virtualKey) ([]byte, error) {
		return encode.Bytes(listener.BuildVirtualOutbound(k.Outside, g.reports.Reporting(c, k.Proxy, telemetry.Outbound))), nil
	})
	all := incr.Join(g.outbound.sets, shapes, "listeners of sets",
		func(s listenerSet, _ struct{}) []dialer { return []dialer{s.dialer()} },
		func(p place, _ shape) []dialer { return []dialer{p.Dialer} },
		bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[listenerSet, place], _ struct{}, s shape) ([]byte, error) {
			return g.buildListener(c, k.Right, s, k.Left.Proxy), nil
		})
	named := incr.FlatMap(all, "named listeners", bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[listenerSet, place], b []byte) ([]incr.Item[setListener, []byte], error) {
			if k.Left.Patches != "" {
				patched, ok := g.patches.Set(c, k.Left.Patches).Listener(networking.EnvoyFilter_SIDECAR_OUTBOUND, b)
				if !ok {
					return nil, nil
				}
				b = patched
			}
			return []incr.Item[setListener, []byte]{{Key: setListener{k.Left, k.Right.Bind}, Value: b}}, nil
		})
	g.outbound.inSet = incr.NewIndex(named, "listeners of set", func(k setListener, _ []byte) []listenerSet { return []listenerSet{k.Set} })
}

func (g *graph) buildListener(c *incr.Ctx, at place, s shape, p listener.Proxy) []byte {
	return encode.Bytes(listener.BuildOutbound(listener.Outbound{
		Bind:     at.Bind,
		More:     s.More,
		Dialed:   s.Dialed,
		HTTP:     s.HTTP,
		Sniffed:  s.Sniffed,
		Protocol: s.Protocol,
		Route:    s.Route,
		Lookups:  s.Lookups,
		Chains:   g.outboundChains(c, at.Dialer.Scope, s.Chains),
		Outside:  g.scopes.Outside(c, at.Dialer.Scope),
		Proxy:    g.reports.Reporting(c, p, telemetry.Outbound),
	}))
}
