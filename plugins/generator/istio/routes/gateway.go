package routes

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ofGateway makes the route configuration of a name. Names that no server has mean nothing.
func (x *Routes) ofGateway(c *incr.Ctx, k Key) ([][]byte, error) {
	groups := x.from.Gateways.Groups(c, k.View.Servers())
	found := gateway.ByRoute(groups, k.Name)
	if len(found) == 0 {
		return route.Empty(k.Name), nil
	}
	made := map[servedAt][]*routev3.Route{}
	var servers []route.Server
	for _, s := range found {
		servers = append(servers, x.server(c, k.View.Scope, s))
	}
	routesOf := func(v *config.VirtualService, s route.Server) []*routev3.Route {
		at := servedAt{s.Gateway, v.Key}
		if len(made[at]) > 0 {
			return made[at]
		}
		view := x.services.sender(c, k.View.at(s.Gateway), v.Key)
		list := x.services.routes.Of(c, routesKey{View: view, Service: v.Key, Port: s.Port, TLS: s.TLS})
		if x.from.QUIC && slices.ContainsFunc(found, func(f gateway.Server) bool { return f.HTTP3() }) {
			list = route.WithHTTP3(list, s.Port)
		}
		made[at] = list
		return list
	}
	refused, undecided := route.Undecided(servers, routesOf)
	x.from.Gateways.Contests.Say(c, undecided)
	for i := range servers {
		servers[i].Refused = refused
	}
	virtual := route.GatewayHosts(servers, routesOf)
	if own, others := gateway.Neighbours(groups, found[0]); len(others) > 0 {
		virtual = route.Misdirected(virtual, own, others, servers[0].Port)
	}
	var hosts [][]byte
	for _, h := range virtual {
		if k.View.Headers.NoAttempts {
			h.IncludeRequestAttemptCount = false
		}
		hosts = append(hosts, route.EncodedHost(h))
	}
	return route.Configuration(k.Name, hosts), nil
}

// servedAt is a virtual service at a Gateway: its routes are made once for all servers of one, for
// the first that it is for.
type servedAt struct{ Gateway, Service string }

func (x *Routes) server(c *incr.Ctx, s scope.Scope, from gateway.Server) route.Server {
	return route.Server{
		Gateway:       from.Gateway.Key,
		Port:          from.Spec.Port.Number,
		Hosts:         from.Hosts,
		HostsFor:      from.HostsFor,
		HTTPSRedirect: from.Spec.GetTls().GetHttpsRedirect(),
		TLS:           from.Spec.Tls != nil,
		Services:      x.from.Scopes.VirtualServices.AtGateway(c, s.Namespace, from.Gateway.Key),
		Filters:       func(hosts []string) map[string]*anypb.Any { return x.sessions.of(c, s, hosts) },
	}
}

// Servers is what the servers of a gateway's view depend on.
func (k View) Servers() gateways.Key { return gateways.Key{Gateways: k.Gateways, Ports: k.Ports} }

// at is the view of one Gateway alone: routes don't depend on the others.
func (k View) at(gateway string) View {
	k.Gateways, k.Ports = config.KeysOf([]string{gateway}), ""
	return k
}
