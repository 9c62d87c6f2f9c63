package listeners

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// GatewayKey is the listeners of Gateways on a proxy.
type GatewayKey struct {
	Servers gateways.Key
	// Scope is what their routes see.
	Scope scope.Scope
	Proxy listener.Proxy
	// Unprivileged: the proxy can't open low ports, and is asked to.
	Unprivileged bool
	// Patches change them (patches.Keys).
	Patches string
}

// gatewayListener names a listener of a gateway.
type gatewayListener struct {
	Bind listener.Bind
	Set  GatewayKey
	// Takes is what comes there.
	Takes takes
}

// takes is what a listener takes: connections, those of HTTP/3, or datagrams.
type takes int

const (
	takesConnections takes = iota
	takesQUIC
	takesDatagrams
)

// internalRanges are the addresses of the mesh's networks, in order.
func (x *ofGateways) internalRanges(c *incr.Ctx) []netip.Prefix {
	r, _ := x.from.Tables.Networks.Get(c, state.Networks)
	var out []netip.Prefix
	for _, n := range r.Value.GetNetworks() {
		for _, e := range n.GetEndpoints() {
			if p, ok := rangeOf(e.GetFromCidr()); ok {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return out
}

// rangeOf reads a range of addresses, or one address.
func rangeOf(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	return p, err == nil
}

// ofGateways are the listeners of Gateways.
type ofGateways struct {
	from *From
	one  *incr.Func[gatewayListener, []byte]
	// leftOut has no values: it fails, so that who reads faults is told of chains that are left
	// out, and of the objects that they are made from.
	leftOut *incr.Func[leftOut, struct{}]
}

// leftOut is what is left out of a listener, and why: what a chain of an owner asked for.
type leftOut struct {
	Listener string
	Of       gateway.Owner
	Why      string
	// Routes are the keys of virtual services whose hosts are left out with it.
	Routes config.Keys
}

// String returns it in words for a log.
func (l leftOut) String() string { return fmt.Sprintf("of %s at %s", l.Of, l.Listener) }

// newOfGateways adds them to a graph, as a list.
func newOfGateways(graph *incr.Graph, from *From) *incr.Func[GatewayKey, []sdk.Resource] {
	x := &ofGateways{from: from}
	x.leftOut = incr.NewFunc(graph, "filter chain", incr.Same[struct{}], func(c *incr.Ctx, k leftOut) (struct{}, error) {
		if k.Of.Service != "" {
			x.from.Tables.VirtualServices.Get(c, k.Of.Service)
		} else {
			x.from.Tables.Gateways.Get(c, k.Of.Gateway)
		}
		for key := range k.Routes.All() {
			x.from.Tables.VirtualServices.Get(c, key)
		}
		return struct{}{}, errors.New(k.Why)
	})
	x.one = incr.NewFunc(graph, "gateway listener", bytes.Equal, func(c *incr.Ctx, k gatewayListener) ([]byte, error) {
		if k.Takes == takesDatagrams {
			return x.datagrams(c, k)
		}
		in := listener.Gateway{
			Bind: k.Bind, Proxy: x.from.Reports.Reporting(c, k.Set.Proxy, telemetry.Gateway), TLS: x.from.Policies.TLSDefaults(c),
			Guards: x.from.Policies.Guards(c, k.Set.Proxy.Policies, true), Internal: x.internalRanges(c),
		}
		b := chainBuilder{from: x.from, c: c, set: k.Set}
		var chains []serverChain
		for _, group := range x.from.Gateways.Groups(c, k.Set.Servers) {
			if !group.Datagrams && gatewayBind(group.Place, k.Set.Proxy.Dialing.Families) == k.Bind {
				chains = append(chains, b.group(quicOnly(group, k.Takes == takesQUIC))...)
			}
		}
		in.Chains = x.distinct(c, k, chains)
		if len(in.Chains) == 0 {
			return nil, incr.Absent
		}
		if k.Takes == takesQUIC {
			return encode.Bytes(listener.BuildQUIC(in)), nil
		}
		return encode.Bytes(listener.BuildGateway(in)), nil
	})
	return patches.List[GatewayKey]{
		Name:    "gateway listeners",
		Plain:   x.list,
		Patches: func(k *GatewayKey) *string { return &k.Patches },
		Patch: func(c *incr.Ctx, keys string, _ GatewayKey, r sdk.Resource) ([]byte, bool) {
			return from.Patches.Listener(c, keys, networking.EnvoyFilter_GATEWAY, r.Name, r.Body)
		},
	}.Add(graph)
}

// serverChain is a filter chain and what it is made of.
type serverChain struct {
	listener.GatewayChain
	from gateway.Chain
}

// distinct leaves out of chains what a chain before them asks for, and what Envoy would refuse by
// itself: those of others are in the same listener.
func (x *ofGateways) distinct(c *incr.Ctx, k gatewayListener, chains []serverChain) []listener.GatewayChain {
	claims := gateway.NewClaims()
	var out []listener.GatewayChain
	for _, chain := range chains {
		of := chain.from.Owner()
		left, lost, kept := claims.Take(chain.Match(), of)
		for _, l := range lost {
			x.leftOut.Get(c, leftOut{k.Bind.Name(), of, l.Why(of), x.routesOf(c, k.Set.Scope.Namespace, &chain.from, l)})
		}
		if len(left) > 0 {
			chain.Names = left
		}
		if kept {
			out = append(out, chain.GatewayChain)
		}
	}
	return out
}

// maxRoutes bounds the virtual services that a fault of a server names.
const maxRoutes = 8

// routesOf are the keys of virtual services whose routes lead what a server lost.
func (x *ofGateways) routesOf(c *incr.Ctx, namespace string, of *gateway.Chain, lost gateway.Loss) config.Keys {
	switch {
	case of.Service != nil:
		return config.KeysOf([]string{of.Service.Key})
	case !of.Requests:
		return ""
	}
	var keys []string
	for _, v := range x.from.Scopes.VirtualServices.AtGateway(c, namespace, of.Server.Gateway.Key) {
		if len(keys) == maxRoutes {
			break
		}
		if len(v.Spec.Http) > 0 && of.Server.Has(v) && lost.Concerns(v.Spec.Hosts) {
			keys = append(keys, v.Key)
		}
	}
	return config.KeysOf(keys)
}

// list are the listeners of Gateways on a proxy. One to which no route leads is left out.
func (x *ofGateways) list(c *incr.Ctx, k GatewayKey) []sdk.Resource {
	var out []sdk.Resource
	k.Patches = ""
	for _, b := range x.binds(c, k) {
		if body, ok := x.one.Get(c, gatewayListener{Bind: b, Set: k}); ok {
			out = append(out, sdk.Resource{Name: b.Name(), Body: body})
		}
		if body, ok := x.one.Get(c, gatewayListener{b, k, takesDatagrams}); ok {
			out = append(out, sdk.Resource{Name: b.DatagramName(), Body: body})
		} else if body, ok := x.one.Get(c, gatewayListener{b, k, takesQUIC}); x.from.QUIC && ok {
			out = append(out, sdk.Resource{Name: b.QUICName(), Body: body})
		}
	}
	return out
}

// datagrams make the listener for them at a place: where the first route leads of the server that
// is there. Envoy has nothing that would check them by policies.
func (x *ofGateways) datagrams(c *incr.Ctx, k gatewayListener) ([]byte, error) {
	in := listener.Gateway{Bind: k.Bind, Proxy: x.from.Reports.Reporting(c, k.Set.Proxy, telemetry.Gateway)}
	b := chainBuilder{from: x.from, c: c, set: k.Set}
	for _, group := range x.from.Gateways.Groups(c, k.Set.Servers) {
		if !group.Datagrams || gatewayBind(group.Place, k.Set.Proxy.Dialing.Families) != k.Bind {
			continue
		}
		for _, s := range group.Servers {
			to, ok := b.datagrams(s)
			switch {
			case ok && x.from.Policies.Enforces(c, k.Set.Proxy.Policies):
				at, of := k.Bind.DatagramName(), gateway.Chain{Server: s}
				x.leftOut.Get(c, leftOut{Listener: at, Of: of.Owner(), Why: "it is left out of listener " + at +
					": an AuthorizationPolicy counts for these proxies, and nothing checks datagrams by it; have the policy select other workloads"})
			case ok:
				return encode.Bytes(listener.BuildDatagrams(in, to)), nil
			}
		}
	}
	return nil, incr.Absent
}

// quicOnly leaves the servers of a group to which HTTP/3 may come; all of them if it isn't asked
// for.
func quicOnly(group gateway.Group, asked bool) gateway.Group {
	if asked {
		group.Servers = slices.DeleteFunc(slices.Clone(group.Servers), func(s gateway.Server) bool { return !s.HTTP3() })
	}
	return group
}

// binds are the places at which Gateways listen, in order.
func (x *ofGateways) binds(c *incr.Ctx, k GatewayKey) []listener.Bind {
	var out []listener.Bind
	for _, group := range x.from.Gateways.Groups(c, k.Servers) {
		if b := gatewayBind(group.Place, k.Proxy.Dialing.Families); !(k.Unprivileged && b.Port < gateways.Privileged) && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b listener.Bind) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Address, b.Address))
	})
	return out
}

// gatewayBind is where the servers of a group listen: at the address that they name, or at all of
// the proxy's.
func gatewayBind(p gateway.Place, f config.Families) listener.Bind {
	return listener.Bind{Address: cmp.Or(p.Bind, f.Any()[0]), Port: p.Port}
}

// chainBuilder makes the chains of one listener.
type chainBuilder struct {
	from *From
	c    *incr.Ctx
	set  GatewayKey
}

func (b *chainBuilder) group(group gateway.Group) []serverChain {
	var out []serverChain
	for _, from := range group.Chains(b.routes) {
		s := from.Server
		chain := listener.GatewayChain{Names: from.Names, Protocol: s.Protocol()}
		switch {
		case s.Automatic():
			for _, each := range b.automatic(s) {
				out = append(out, serverChain{each, from})
			}
			continue
		case from.Requests:
			chain.Route = s.Route()
			if s.HTTPS() {
				chain.TLS, chain.Stat = s.Spec.Tls, s.Spec.Name
			}
		default:
			chain.Forward, chain.Port = b.forward(from.Service, from.Route, s), s.Spec.Port.Number
			if !from.ByName {
				chain.TLS = s.Spec.Tls
			}
		}
		out = append(out, serverChain{chain, from})
	}
	return out
}

// routes are the virtual services of a server's Gateway, in the order in which they count.
func (b *chainBuilder) routes(s gateway.Server) []*config.VirtualService {
	return b.from.Scopes.VirtualServices.AtGateway(b.c, b.set.Scope.Namespace, s.Gateway.Key)
}

// datagrams go where the first route leads that is for the server; ok is false where there is none.
func (b *chainBuilder) datagrams(s gateway.Server) (to listener.Forward, ok bool) {
	for _, v := range b.routes(s) {
		if !v.UDPRoute || !s.Has(v) {
			continue
		}
		for _, t := range v.Spec.Tcp {
			if len(t.Route) > 0 {
				return b.forward(v, t.Route, s), true
			}
		}
	}
	return to, false
}

// forward is where a route of a server leads.
func (b *chainBuilder) forward(v *config.VirtualService, route []*networking.RouteDestination, s gateway.Server) listener.Forward {
	return b.from.Destinations.Forward(b.c, b.set.Scope, v, route, s.Spec.Port.Number, s.Spec.Port.Name)
}

// automatic are the chains by which TLS of the mesh goes on to the cluster that its server name
// says.
func (b *chainBuilder) automatic(s gateway.Server) []listener.GatewayChain {
	var out []listener.GatewayChain
	names := s.Names()
	for _, i := range b.from.Scopes.Hosts.Of(b.c, b.set.Scope) {
		covered := slices.ContainsFunc(names, func(n string) bool { return istio.Covers(n, i.Key.Host) })
		if i.Value.External || !covered {
			continue
		}
		rule := b.from.Rules.PolicyFor(b.c, b.set.Scope.Client(), i.Value)
		for _, p := range i.Value.Ports {
			if protocol := config.ParseProtocol(p.Protocol); protocol != config.UDP {
				out = append(out, b.automaticChains(i.Value, p, protocol, rule)...)
			}
		}
	}
	return out
}

func (b *chainBuilder) automaticChains(s *config.Service, p *pb.Port, protocol config.Protocol,
	rule *networking.DestinationRule) []listener.GatewayChain {
	subsets := []string{""}
	for _, sub := range rule.GetSubsets() {
		subsets = append(subsets, sub.Name)
	}
	n := cluster.Name{Port: p.Number, Host: s.Host}
	var out []listener.GatewayChain
	for _, n.Subset = range subsets {
		forward := listener.ToCluster(n.SNI())
		forward.Rule, forward.Subset, forward.Straight = rule, n.Subset, true
		forward.Stat = b.from.Destinations.Stat(b.c, b.set.Scope, n, p.Name, forward.Stat)
		out = append(out, listener.GatewayChain{
			Names: []string{n.SNI()}, Protocols: listener.MeshProtocols(), Protocol: protocol, Forward: forward, Port: p.Number, Unguarded: true,
		})
	}
	return out
}
