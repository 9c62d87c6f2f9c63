package listeners

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// dialer is what the places of a scope's listeners depend on.
type dialer struct {
	Scope scope.Scope
	How   listener.Dialer
	Self  string
	// Selections are the source selectors that the proxies answer.
	Selections string
}

// caller is a service's port at a place.
type caller struct {
	service *config.Service
	// reach is how the service reaches the scope's namespace.
	reach    istio.Reach
	protocol config.Protocol
	chain    listener.Chain
	// further chains, where a virtual service tells connections apart.
	further []listener.Chain
	// more addresses of the place; dialed: the workload dials it.
	more   string
	dialed bool
	// given: the Sidecar names the place by its port. forwards: requests name their destination in
	// full.
	given, forwards bool
}

func sameCaller(a, b caller) bool {
	return a.service == b.service && a.reach == b.reach && a.protocol == b.protocol && a.chain == b.chain && slices.Equal(a.further, b.further) &&
		a.more == b.more && a.dialed == b.dialed && a.given == b.given && a.forwards == b.forwards
}

// callers are the places of one service's ports.
type callers []incr.Item[arrival, caller]

func sameCallers(a, b callers) bool {
	return slices.EqualFunc(a, b, func(x, y incr.Item[arrival, caller]) bool { return x.Key == y.Key && sameCaller(x.Value, y.Value) })
}

// addArrivals gathers the ports of services at the places where proxies of the sets dial them.
func (x *Outbound) addArrivals(sets incr.Collection[Set, struct{}]) incr.Collection[arrival, caller] {
	byDialer := incr.NewIndex(sets, "listener sets by dialer", func(s Set, _ struct{}) []dialer { return []dialer{s.dialer()} })
	dialers := incr.Group(byDialer, "dialers", incr.Same[struct{}],
		func(*incr.Ctx, dialer, []incr.Item[Set, struct{}]) (struct{}, error) { return struct{}{}, nil })
	dialed := incr.Join(dialers, x.from.Scopes.Visible, "hosts that are dialled",
		func(d dialer, _ struct{}) []scope.Scope { return []scope.Scope{d.Scope} },
		func(h scope.Host, _ *config.Service) []scope.Scope { return []scope.Scope{h.Scope} },
		sameCallers,
		func(c *incr.Ctx, k incr.Pair[dialer, scope.Host], _ struct{}, s *config.Service) (callers, error) {
			return x.callersOf(c, k.Left, k.Right, s), nil
		})
	return incr.FlatMap(dialed, "ports that are dialled", sameCaller,
		func(_ *incr.Ctx, _ incr.Pair[dialer, scope.Host], list callers) ([]incr.Item[arrival, caller], error) {
			return list, nil
		})
}

// gathering is the places of one service's ports as they are found: where each stands in the list,
// and by which egress listener it came.
type gathering struct {
	list   callers
	placed map[arrival]struct{ via, index int }
}

// add adds a place, or chains to it; where two listeners of a Sidecar have the same place, the
// first counts.
func (f *gathering) add(k arrival, via int, call caller, chains []listener.Chain) {
	at, ok := f.placed[k]
	switch {
	case !ok:
		f.placed[k] = struct{ via, index int }{via, len(f.list)}
		call.chain, call.further = chains[0], chains[1:]
		f.list = append(f.list, incr.Item[arrival, caller]{Key: k, Value: call})
	case at.via == via:
		into := &f.list[at.index].Value
		into.further = append(into.further, chains...)
	}
}

// callersOf are the places of a service's ports.
func (x *Outbound) callersOf(c *incr.Ctx, d dialer, h scope.Host, s *config.Service) callers {
	found := gathering{placed: map[arrival]struct{ via, index int }{}}
	reach := x.from.Mesh.Reach(c, s, d.Scope.Namespace)
	for _, in := range x.from.Scopes.Sidecars.ImportsOf(c, h, s) {
		for _, p := range in.Service.Ports {
			if cluster.IsDynamic(in.Service) && !cluster.CanBeDynamic(config.ParseProtocol(p.Protocol)) {
				continue
			}
			for _, a := range x.arrivalsOf(c, d, in, p) {
				if a.caller.protocol == config.UDP || !d.takes(a) {
					continue
				}
				k, via := arrival{place{d, a.where.Bind}, h.Host, p.Number}, in.Listener.Place()
				a.caller.service, a.caller.reach, a.caller.more = s, reach, a.where.More
				found.add(k, via, a.caller, x.routeChains(c, d, s, via, k, a.where.Chain, in.Listener.NameOf(p)))
			}
		}
	}
	return found.list
}

// takes reports whether there can be a listener at a place: ports that the proxy has for itself are
// taken where it listens to all addresses. istiod asks so of HTTP alone; an Envoy that starts would
// refuse one of two listeners at an address, which may be the one that takes all that is sent.
func (d dialer) takes(a arriving) bool {
	return d.How.Ports.Free(a.where.Bind, d.How.Families, a.caller.dialed)
}

type arriving struct {
	where  listener.Arrival
	caller caller
}

// arrivalsOf are the places of a service's port as a listener of the scope's Sidecar has it: where
// that says, and otherwise at the service's own addresses, or its endpoints' where it has none.
func (x *Outbound) arrivalsOf(c *incr.Ctx, d dialer, in scope.Imported, p *pb.Port) []arriving {
	call, how, port := callOf(in.Listener, d.How, p)
	if in.Listener != nil && in.Listener.Bind != "" {
		at := listener.Bind{Address: in.Listener.Bind, Port: port}
		return []arriving{{listener.ArrivalAt(in.Service, p.Number, call.protocol, at, in.Service.AddressesFor(how.Dialing)[0]), call}}
	}
	if !call.given {
		if list, ok := x.endpointPlaces(c, d, how, in.Service, p); ok {
			return atPort(list, port, call)
		}
	}
	return atPort(listener.Arrivals(in.Service, p.Number, call.protocol, how), port, call)
}

// callOf is what an egress listener makes of a service's port: how it is treated, how it is dialled
// and at which port. Without a listener (nil) all is as the service and the proxy say.
func callOf(l *scope.Listener, how listener.Dialer, p *pb.Port) (caller, listener.Dialer, uint32) {
	call := caller{protocol: config.ParseProtocol(p.Protocol), dialed: how.Dialed, forwards: strings.EqualFold(p.Protocol, scope.HTTPProxy)}
	if l == nil {
		return call, how, p.Number
	}
	if l.Capture == networking.CaptureMode_NONE || strings.HasPrefix(l.Bind, hosts.Unix) {
		how.Dialed = true
	}
	call.dialed = how.Dialed
	if l.IsCatchAll() {
		return call, how, p.Number
	}
	call.given, call.protocol, call.forwards = true, l.Protocol, l.Proxy
	return call, how, l.Port
}

func atPort(list []listener.Arrival, port uint32, call caller) []arriving {
	out := make([]arriving, len(list))
	for i, a := range list {
		a.Bind.Port = port
		out[i] = arriving{a, call}
	}
	return out
}

// endpointPlaces are the places of a service without an address of its own: connections to each
// endpoint, but the workload itself. Requests can be told apart without. False where all go to one
// place.
func (x *Outbound) endpointPlaces(c *incr.Ctx, d dialer, how listener.Dialer, s *config.Service, p *pb.Port) ([]listener.Arrival, bool) {
	if how.Dialed || config.ParseProtocol(p.Protocol).IsHTTP() || !isHeadless(s, how.Dialing) {
		return nil, false
	}
	list := slices.SortedFunc(slices.Values(x.from.Workloads.Endpoints(c, s.Key)), endpoint.Order)
	list = slices.DeleteFunc(list, func(e *endpoint.Endpoint) bool { return e.PortName != p.Name })
	if len(list) == 0 && s.Registry != config.Kubernetes && len(s.Selector) == 0 {
		return nil, false
	}
	var out []listener.Arrival
	for _, e := range list {
		addresses := []string{e.Address}
		if x.from.DualStack { // whatever the client has, as istiod
			addresses = append(addresses, e.MoreAddresses...)
		}
		for _, a := range addresses {
			if _, err := netip.ParseAddr(a); err == nil && a != d.Self {
				out = append(out, listener.ArrivalAt(s, p.Number, config.ParseProtocol(p.Protocol), listener.Bind{Address: a, Port: p.Number}, a))
			}
		}
	}
	return out, true
}

// isHeadless reports whether connections go where they were going, to an address that is no
// service's.
func isHeadless(s *config.Service, d config.Dialing) bool {
	return s.Resolution == pb.ServiceResolutionNone && listener.Bind{Address: s.AddressesFor(d)[0]}.Any()
}

// Self is the proxy's own address where a service without addresses of its own has it as an
// endpoint; connections to oneself need no listener.
func (x *Outbound) Self(c *incr.Ctx, n *node.Node) string {
	self := n.Addresses[0]
	for _, e := range x.from.Workloads.At(c, self) {
		s, ok := x.from.Tables.Services.Get(c, e.ServiceKey())
		if ok && isHeadless(s.Value, x.from.Workloads.Dialing(n)) {
			return self
		}
	}
	return ""
}
