package gateway

import (
	"cmp"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Chain is a filter chain of a listener, as far as a server and its routes say it.
type Chain struct {
	Server Server
	// Names in TLS hellos by which clients ask for it; a `*` among them means any, as does none.
	Names []string
	// Requests: they are read, by the server's route configuration. Where they aren't, and the
	// server isn't automatic, Service is the virtual service that says by Route where connections
	// go.
	Requests bool
	Service  *config.VirtualService
	Route    []*networking.RouteDestination
	// ByName: a TLS route of Service says Names, not the server.
	ByName bool
}

// Owner is whose a filter chain is: the key of a Gateway, which of its servers, and the key of the
// virtual service that says the chain's names, if one does.
type Owner struct{ Gateway, Server, Service string }

// Owner is whose the chain is.
func (c *Chain) Owner() Owner {
	port := c.Server.Spec.Port
	o := Owner{Gateway: c.Server.Gateway.Key, Server: fmt.Sprintf("%s (%s)", cmp.Or(port.Name, number(port.Number)), port.Protocol)}
	if c.ByName {
		o.Service = c.Service.Key
	}
	return o
}

// String returns the owner in words.
func (o Owner) String() string {
	if o.Service != "" {
		return fmt.Sprintf("VirtualService %s at Gateway %s", o.Service, o.Gateway)
	}
	return fmt.Sprintf("server %s of Gateway %s", o.Server, o.Gateway)
}

// Chains are those of a group's servers, in order. Of an automatic server there is one, which
// stands for one of each service. routes are the virtual services of a server's Gateway, in the
// order in which they count.
func (g *Group) Chains(routes func(Server) []*config.VirtualService) []Chain {
	if config.ParseProtocol(g.Protocol).IsHTTP() && len(g.Servers) > 0 {
		return []Chain{{Server: g.Servers[0], Requests: true}}
	}
	var out []Chain
	for _, s := range g.Servers {
		switch {
		case s.HTTPS():
			out = append(out, Chain{Server: s, Names: s.Names(), Requests: true})
		case s.Automatic():
			out = append(out, Chain{Server: s, Names: s.Names()})
		case s.Passes():
			out = append(out, s.byName(routes(s))...)
		default:
			out = append(out, s.connections(routes(s))...)
		}
	}
	return out
}

// connections follow the first TCP route that is for the server, or a TLSRoute where the server
// opens TLS; none where there is none.
func (s Server) connections(routes []*config.VirtualService) []Chain {
	for _, v := range routes {
		if !s.Has(v) {
			continue
		}
		for _, t := range v.Spec.Tcp {
			if len(t.Route) > 0 && s.leadsHere(t) {
				return []Chain{{Server: s, Names: s.Names(), Service: v, Route: t.Route}}
			}
		}
		if route := s.opened(v); route != nil {
			return []Chain{{Server: s, Names: s.Names(), Service: v, Route: route}}
		}
	}
	return nil
}

// opened is where a TLSRoute leads connections whose TLS the server opens: the listener's hostname
// has chosen among the route's names then. Source: Gateway API, TLSRoute, "Terminate".
func (s Server) opened(v *config.VirtualService) []*networking.RouteDestination {
	if !v.TLSRoute || s.Spec.Tls == nil {
		return nil
	}
	for _, t := range v.Spec.Tls {
		if len(t.Route) > 0 && slices.ContainsFunc(t.Match, func(m *networking.TLSMatchAttributes) bool { return s.meant(m.Port, m.Gateways) }) {
			return t.Route
		}
	}
	return nil
}

func (s Server) leadsHere(t *networking.TCPRoute) bool {
	return len(t.Match) == 0 || slices.ContainsFunc(t.Match, func(m *networking.L4MatchAttributes) bool {
		return s.meant(m.Port, m.Gateways)
	})
}

// meant reports whether a match is for the server; the port is the one that the server names,
// wherever the proxy listens.
func (s Server) meant(port uint32, gateways []string) bool {
	return (port == 0 || port == s.Spec.Port.Number) && (len(gateways) == 0 || slices.Contains(gateways, s.Gateway.Key))
}

// byName are the chains of TLS routes: each match has its own.
func (s Server) byName(routes []*config.VirtualService) []Chain {
	var out []Chain
	for _, v := range routes {
		if !s.Has(v) {
			continue
		}
		for _, t := range v.Spec.Tls {
			for _, m := range t.Match {
				if len(t.Route) > 0 && s.meant(m.Port, m.Gateways) {
					out = append(out, Chain{Server: s, Names: m.SniHosts, Service: v, Route: t.Route, ByName: true})
				}
			}
		}
	}
	return out
}
