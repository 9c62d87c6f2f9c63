package istio

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// gatewayRoute makes the route configuration of a name. Names that no server has mean nothing.
func (g *graph) gatewayRoute(c *incr.Ctx, k routeKey) ([]byte, error) {
	found := gateway.ByRoute(g.groups.Of(c, k.View.servers()), k.Name)
	if len(found) == 0 {
		return route.Empty(k.Name), nil
	}
	advertised := map[string][]*routev3.Route{}
	var servers []route.Server
	for _, s := range found {
		servers = append(servers, g.routeServer(c, k.View.Scope, s))
	}
	var hosts [][]byte
	for _, h := range route.GatewayHosts(servers, func(v *config.VirtualService, s route.Server) []*routev3.Route {
		list := g.routesOf(c, k.View.at(s.Gateway), v, s.Port)
		if !g.quic || !slices.ContainsFunc(found, func(f gateway.Server) bool { return f.HTTP3() }) {
			return list
		}
		if advertised[v.Key] == nil {
			advertised[v.Key] = route.WithHTTP3(list, s.Port)
		}
		return advertised[v.Key]
	}) {
		hosts = append(hosts, encode.Bytes(h))
	}
	return route.Configuration(k.Name, hosts), nil
}

func (g *graph) routeServer(c *incr.Ctx, s Scope, from gateway.Server) route.Server {
	return route.Server{
		Gateway:       from.Gateway.Key,
		Port:          from.Spec.Port.Number,
		Hosts:         from.Hosts,
		HostsFor:      from.HostsFor,
		HTTPSRedirect: from.Spec.GetTls().GetHttpsRedirect(),
		Services:      g.servicesAt(c, s.Namespace, from.Gateway.Key),
	}
}

// servers is what the servers of a gateway's view depend on.
func (k routeView) servers() gatewayKey { return gatewayKey{k.Gateways, k.Ports} }

// at is the view of one Gateway alone: routes don't depend on the others.
func (k routeView) at(gateway string) routeView {
	k.Gateways, k.Ports = gateway, ""
	return k
}
