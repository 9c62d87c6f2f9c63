package istio

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// proxyRoute is the name of the route configuration of the listener at which the workload finds a proxy for HTTP.
const proxyRoute = "http_proxy"

// proxyListener is that listener (outside is the cluster for requests to hosts that nobody knows); none where the proxy has no such port.
func (g *graph) proxyListener(c *incr.Ctx, p listener.Proxy, outside string) []sdk.Resource {
	if p.Ports.Proxy == 0 {
		return nil
	}
	at := p.Dialing.Families.Loopback()
	l := listener.BuildOutbound(listener.Outbound{
		Bind: proxyBind(p), More: strings.Join(at[1:], ","), Dialed: true, HTTP: true,
		Protocol: config.HTTP, Route: proxyRoute, Forwards: true, Outside: outside, Proxy: g.reports.Reporting(c, p, telemetry.Outbound),
	})
	return []sdk.Resource{{Name: l.Name, Body: encode.Bytes(l)}}
}

// proxyBind is where it listens; the zero value where there is none.
func proxyBind(p listener.Proxy) listener.Bind {
	if p.Ports.Proxy == 0 {
		return listener.Bind{}
	}
	return listener.Bind{Address: p.Dialing.Families.Loopback()[0], Port: p.Ports.Proxy}
}

// wholeEgress is the egress listener (nil: none, and all is imported) behind routes by which requests go to any port: those of a proxy for
// HTTP, and of a Unix socket. ok is false where a name means no such routes.
func (g *graph) wholeEgress(c *incr.Ctx, s scope.Scope, name string, port uint32) (l *scope.Listener, ok bool) {
	list := g.scopes.EgressOf(c, s)
	find := func(is func(l *scope.Listener) bool) *scope.Listener {
		for i := range list {
			if is(&list[i]) {
				return &list[i]
			}
		}
		return nil
	}
	switch {
	case name == proxyRoute:
		l = find((*scope.Listener).IsCatchAll)
		return l, l != nil || len(list) == 0
	case strings.HasPrefix(name, hosts.Unix):
		l = find(func(l *scope.Listener) bool { return l.Bind == name })
		return l, l != nil
	case port != 0:
		l = scope.Ruling(list, port)
		return l, l != nil && l.Proxy
	}
	return nil, false
}

// wholeRoute joins the virtual hosts of all services that an egress listener imports (nil: of all),
// each at all of its ports, behind those of hosts that virtual services route and no registry
// knows. Who says no port means 80.
func (g *graph) wholeRoute(c *incr.Ctx, k routeKey, l *scope.Listener) [][]byte {
	members := slices.Clone(g.scopes.Hosts.Of(c, k.View.Scope))
	slices.SortStableFunc(members, func(a, b incr.Item[scope.Host, *config.Service]) int { return config.Older(a.Value, b.Value) })
	known := func(h string) bool {
		return slices.ContainsFunc(members, func(m incr.Item[scope.Host, *config.Service]) bool {
			named := m.Key.Host == h || istio.IsWildcard(h) && istio.Overlaps(h, m.Key.Host)
			return named && (l == nil || l.Imports(m.Value) != nil)
		})
	}
	hosts, taken := g.outsideHostsOfProxy(c, k.View, l.Place(), known)
	for _, m := range members {
		if l != nil && l.Imports(m.Value) == nil {
			continue
		}
		for _, p := range m.Value.Ports {
			if protocol := config.ParseProtocol(p.Protocol); !protocol.IsHTTP() && protocol != config.Sniffed {
				continue
			}
			names := domainsOf(m.Value, k.View.Domain, k.View.Dialing)
			domains := slices.DeleteFunc(route.AtPort(names, p.Number), func(d string) bool { return taken[d] })
			for _, d := range domains {
				taken[d] = true
			}
			if p.Number != outsidePort {
				domains = slices.DeleteFunc(domains, func(d string) bool { return !strings.Contains(d, ":") })
			}
			if len(domains) > 0 {
				hosts = append(hosts, g.wholeHost(c, k.View, m.Value, l.Place(), p.Number, joinDomains(domains)))
			}
		}
	}
	return route.Configuration(k.Name, append(hosts, g.otherHosts(c, k.View)))
}

// otherHosts is the virtual host of requests for hosts that nobody knows.
func (g *graph) otherHosts(c *incr.Ctx, view routeView) []byte {
	return g.rest.Of(c, restKey{g.scopes.Outside(c, view.Scope), view.Headers})
}

// wholeHost is the virtual host of a service's port, for requests that may go to others.
func (g *graph) wholeHost(c *incr.Ctx, view routeView, s *config.Service, via int, port uint32, domains string) []byte {
	k := virtualHostKey{View: routeView{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains, Whole: true}
	if v := g.routing(c, view, scope.Sought{Host: scope.Host{Scope: view.Scope, Host: s.Host}, Via: via}, 0); v != nil {
		k.View, k.Service = g.sender(c, view, v.Key), v.Key
	}
	return g.virtualHost.Of(c, k)
}
