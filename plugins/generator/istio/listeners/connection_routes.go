package listeners

import (
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routeChains are the chains for connections to a service's port at a place, which virtual services
// may lead elsewhere; plain is the one that it has without. There is always one.
func (x *Outbound) routeChains(c *incr.Ctx, d dialer, s *config.Service, via int, k arrival, plain listener.Chain, portNamed string) []listener.Chain {
	if plain.Protocol.IsHTTP() {
		return []listener.Chain{plain}
	}
	r := connectionRoutes{plain: plain, port: k.Place.Bind.Port, portName: portNamed, namespace: d.Scope.Namespace, selected: selection.Answers(d.Selections)}
	services := x.from.Scopes.VirtualServices.Connections(c, scope.Sought{Host: scope.Host{Scope: d.Scope, Host: s.Host}, Via: via})
	if plain.Protocol.IsTLS() {
		return r.byName(services)
	}
	return r.byDestination(services)
}

// connectionRoutes makes chains of routes for one port of a service.
type connectionRoutes struct {
	plain listener.Chain
	// port is where connections come; 0 for a Unix socket, at which destinations can't be told
	// apart.
	port      uint32
	portName  string
	namespace string
	selected  func(labels map[string]string) bool
}

// admits reports whether connections from the proxy can match at all.
func (r *connectionRoutes) admits(port uint32, gateways []string, labels map[string]string, namespace string) bool {
	return (port == 0 || port == r.port) && (len(gateways) == 0 || slices.Contains(gateways, config.MeshGateway)) &&
		(namespace == "" || namespace == r.namespace) && r.selected(labels)
}

func (r *connectionRoutes) chain(v *config.VirtualService, index int) listener.Chain {
	out := r.plain
	out.Cluster = ""
	out.Route = listener.Route{Service: v.Key, Index: index, Port: r.port, PortName: r.portName}
	return out
}

// byDestination are the chains of TCP routes: those for some destinations, up to the first for all.
// The service's own comes last, if nothing takes all of its connections before.
func (r *connectionRoutes) byDestination(services []*config.VirtualService) []listener.Chain {
	var out []listener.Chain
	covered := false
	for _, v := range services {
		for i, t := range v.Spec.Tcp {
			subnets, all := r.destinations(t)
			if all {
				return append(out, r.chain(v, i))
			}
			if len(subnets) == 0 {
				continue
			}
			chain := r.chain(v, i)
			chain.Prefixes, chain.Route.Narrow = strings.Join(subnets, ","), true
			covered = covered || chain.Prefixes == r.plain.Prefixes
			out = append(out, chain)
		}
	}
	if covered {
		return out
	}
	return append(out, r.plain)
}

// destinations are the ranges that a route is for; all: it is for every destination.
func (r *connectionRoutes) destinations(t *networking.TCPRoute) (subnets []string, all bool) {
	if len(t.Route) == 0 {
		return nil, false
	}
	if len(t.Match) == 0 {
		return nil, true
	}
	for _, m := range t.Match {
		if !r.admits(m.Port, m.Gateways, m.SourceLabels, m.SourceNamespace) {
			continue
		}
		if len(m.DestinationSubnets) == 0 || r.port == 0 {
			return nil, true
		}
		subnets = append(subnets, prefixes(m.DestinationSubnets)...)
	}
	slices.Sort(subnets)
	return slices.Compact(subnets), false
}

// prefixes reads addresses and ranges.
func prefixes(list []string) []string {
	var out []string
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if a, wrong := netip.ParseAddr(s); wrong == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil {
			out = append(out, p.String())
		}
	}
	return out
}

// byName are the chains of TLS routes, by the names in hellos; the first route for a name counts.
// The service's own is there if there is none. Destinations that one match names count for the
// following ones that name none, too.
func (r *connectionRoutes) byName(services []*config.VirtualService) []listener.Chain {
	var out []listener.Chain
	destinations := r.plain.Prefixes
	for _, v := range services {
		for i, t := range v.Spec.Tls {
			for _, m := range t.Match {
				if len(t.Route) == 0 || !r.admits(m.Port, m.Gateways, m.SourceLabels, m.SourceNamespace) {
					continue
				}
				chain := r.chain(v, i)
				chain.Route.TLS = true
				chain.ServerName = strings.Join(m.SniHosts, ",")
				if len(m.DestinationSubnets) > 0 && r.port != 0 {
					destinations = strings.Join(prefixes(m.DestinationSubnets), ",")
				}
				chain.Prefixes = destinations
				out = append(out, chain)
			}
		}
	}
	if len(out) == 0 {
		return []listener.Chain{r.plain}
	}
	return out
}

// chains says where the connections of chains go.
func (x *Outbound) chains(c *incr.Ctx, s scope.Scope, chains []listener.Chain) []listener.OutboundChain {
	var out []listener.OutboundChain
	for _, chain := range chains {
		if o, ok := x.chain(c, s, chain); ok {
			out = append(out, o)
		}
	}
	return out
}

func (x *Outbound) chain(c *incr.Ctx, s scope.Scope, chain listener.Chain) (listener.OutboundChain, bool) {
	out := listener.OutboundChain{Chain: chain, Forward: listener.ToCluster(chain.Cluster)}
	r := chain.Route
	if r.Service == "" {
		if n, ok := cluster.ParseName(chain.Cluster); ok {
			out.Forward.Rule = x.from.Destinations.Rule(c, s, n.Host)
			out.Forward.Stat = x.from.Destinations.Stat(c, s, n, "", chain.Cluster)
			out.Forward.Lookup = x.lookup(c, s, chain, n)
		}
		return out, true
	}
	v, ok := x.from.Tables.VirtualServices.Get(c, r.Service)
	if !ok {
		return out, false
	}
	route := routeAt(v.Value.Spec, r)
	if len(route) == 0 {
		return out, false
	}
	out.Forward = x.from.Destinations.Forward(c, s, v.Value, route, r.Port, r.PortName)
	if len(out.Forward.Shares) == 1 {
		if n, ok := cluster.ParseName(out.Forward.Shares[0].Cluster); ok {
			out.Forward.Lookup = x.lookup(c, s, chain, n)
		}
	}
	if !r.Narrow {
		out.Config = v.Value.Path("virtual-service")
	}
	return out, true
}

// lookup is how TLS that passes through towards a cluster finds its destination.
func (x *Outbound) lookup(c *incr.Ctx, s scope.Scope, chain listener.Chain, to cluster.Name) listener.Lookup {
	if chain.Protocol != config.TLS {
		return listener.Lookup{}
	}
	if found, ok := x.from.Scopes.Visible.Get(c, scope.Host{Scope: s, Host: to.Host}); ok && cluster.IsDynamic(found) {
		return listener.Lookup{Host: to.Host, Port: to.Port}
	}
	return listener.Lookup{}
}

// routeAt are the destinations of a route; nil where it is gone.
func routeAt(v *networking.VirtualService, r listener.Route) []*networking.RouteDestination {
	switch {
	case r.TLS && r.Index < len(v.Tls):
		return v.Tls[r.Index].Route
	case !r.TLS && r.Index < len(v.Tcp):
		return v.Tcp[r.Index].Route
	}
	return nil
}
