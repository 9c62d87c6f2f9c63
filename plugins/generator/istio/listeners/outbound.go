package listeners

import (
	"bytes"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Outbound are the listeners by which sidecars send: services of a scope gather at the addresses
// that clients dial; each such place is one listener.
type Outbound struct {
	from    *From
	virtual *incr.Func[virtualKey, []byte]
	// Sets are those that views have; InSet lists their listeners.
	Sets  *incr.Input[Set, struct{}]
	InSet *incr.Index[Set, Listener, []byte]
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

// everywhere reports whether the place takes connections to every address, as the proxy dials them:
// the other family's "any" is an address like others.
func (a arrival) everywhere() bool {
	return a.Place.Bind.Address == a.Place.Dialer.How.Families.Any()[0]
}

// Set is the outbound listeners of a scope, as proxies that are equal for listeners get them.
type Set struct {
	Scope scope.Scope
	Proxy listener.Proxy
	// Self is the proxy's own address where some headless service has it.
	Self string
	// Selections are the source selectors of routes for connections that the proxy answers.
	Selections string
	// Patches change them (patches.Keys).
	Patches string
}

func (s Set) dialer() dialer {
	return dialer{s.Scope, listener.Dialer{Dialing: s.Proxy.Dialing, Dialed: s.Proxy.Dialed, Ports: s.Proxy.Ports}, s.Self, s.Selections}
}

// Listener names a listener of a set, by where it stands.
type Listener struct {
	Set  Set
	Bind listener.Bind
}

func newOutbound(graph *incr.Graph, from *From) *Outbound {
	x := &Outbound{from: from}
	x.Sets = incr.NewInput[Set](graph, "listener sets", incr.Same[struct{}])
	arrivals := x.addArrivals(x.Sets)
	byPlace := incr.NewIndex(arrivals, "ports at place", func(a arrival, _ caller) []place { return []place{a.Place} })
	shapes := incr.Group(byPlace, "shape of listener", sameShape, shapeOf)
	x.virtual = incr.NewFunc(graph, "virtualOutbound", bytes.Equal, func(c *incr.Ctx, k virtualKey) ([]byte, error) {
		return encode.Bytes(listener.BuildVirtualOutbound(k.Outside, x.from.Reports.Reporting(c, k.Proxy, telemetry.Outbound))), nil
	})
	all := incr.Join(x.Sets, shapes, "listeners of sets",
		func(s Set, _ struct{}) []dialer { return []dialer{s.dialer()} },
		func(p place, _ shape) []dialer { return []dialer{p.Dialer} },
		bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[Set, place], _ struct{}, s shape) ([]byte, error) {
			return x.build(c, k.Right, s, k.Left.Proxy), nil
		})
	named := incr.FlatMap(all, "named listeners", bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[Set, place], b []byte) ([]incr.Item[Listener, []byte], error) {
			if k.Left.Patches != "" {
				patched, ok := x.from.Patches.Listener(c, k.Left.Patches, networking.EnvoyFilter_SIDECAR_OUTBOUND, k.Right.Bind.Name(), b)
				if !ok {
					return nil, nil
				}
				b = patched
			}
			return []incr.Item[Listener, []byte]{{Key: Listener{k.Left, k.Right.Bind}, Value: b}}, nil
		})
	x.InSet = incr.NewIndex(named, "listeners of set", func(k Listener, _ []byte) []Set { return []Set{k.Set} })
	return x
}

func (x *Outbound) build(c *incr.Ctx, at place, s shape, p listener.Proxy) []byte {
	return encode.Bytes(listener.BuildOutbound(listener.Outbound{
		Bind:     at.Bind,
		More:     s.More,
		Dialed:   s.Dialed,
		HTTP:     s.HTTP,
		Sniffed:  s.Sniffed,
		Protocol: s.Protocol,
		Route:    s.Route,
		Lookups:  s.Lookups,
		Chains:   x.chains(c, at.Dialer.Scope, s.Chains),
		Outside:  x.from.Scopes.Outside(c, at.Dialer.Scope),
		Proxy:    x.from.Reports.Reporting(c, p, telemetry.Outbound),
	}))
}
