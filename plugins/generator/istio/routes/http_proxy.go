package routes

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// wholeEgress is the egress listener (nil: none, and all is imported) behind routes by which
// requests go to any port: those of a proxy for HTTP, and of a Unix socket. ok is false where a
// name means no such routes.
func (x *Routes) wholeEgress(c *incr.Ctx, s scope.Scope, name string, port uint32) (l *scope.Listener, ok bool) {
	list := x.from.Scopes.Sidecars.Egress(c, s)
	find := func(is func(l *scope.Listener) bool) *scope.Listener {
		for i := range list {
			if is(&list[i]) {
				return &list[i]
			}
		}
		return nil
	}
	switch {
	case name == route.HTTPProxy:
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
func (x *Routes) wholeRoute(c *incr.Ctx, k Key, l *scope.Listener) [][]byte {
	members := slices.Clone(x.from.Scopes.Hosts.Of(c, k.View.Scope))
	slices.SortStableFunc(members, func(a, b incr.Item[scope.Host, *config.Service]) int { return config.Older(a.Value, b.Value) })
	known := func(h string) bool {
		return slices.ContainsFunc(members, func(m incr.Item[scope.Host, *config.Service]) bool {
			named := m.Key.Host == h || istio.IsWildcard(h) && istio.Overlaps(h, m.Key.Host)
			return named && (l == nil || l.Imports(m.Value) != nil)
		})
	}
	hosts, taken := x.outsideHostsOfProxy(c, k.View, l.Place(), known)
	for _, m := range members {
		if l != nil && l.Imports(m.Value) == nil {
			continue
		}
		for _, p := range m.Value.Ports {
			if protocol := config.ParseProtocol(p.Protocol); !protocol.IsHTTP() && protocol != config.Sniffed {
				continue
			}
			names := domainsOf(m.Value, k.View.Domain, k.View.Dialing)
			domains := slices.DeleteFunc(route.AtPort(names, p.Number), func(d string) bool { return !taken.take(d) })
			if p.Number != outsidePort {
				domains = slices.DeleteFunc(domains, func(d string) bool { return !strings.Contains(d, ":") })
			}
			if len(domains) > 0 {
				hosts = append(hosts, x.wholeHost(c, k.View, m.Value, l.Place(), p.Number, joinDomains(domains)))
			}
		}
	}
	slices.SortStableFunc(hosts, route.CompareNames)
	return route.Configuration(k.Name, append(hosts, x.otherHosts(c, k.View)))
}

// otherHosts is the virtual host of requests for hosts that nobody knows.
func (x *Routes) otherHosts(c *incr.Ctx, view View) []byte {
	return x.rest.Of(c, restKey{x.from.Scopes.Outside(c, view.Scope), view.Headers})
}

// wholeHost is the virtual host of a service's port, for requests that may go to others.
func (x *Routes) wholeHost(c *incr.Ctx, view View, s *config.Service, via int, port uint32, domains string) []byte {
	k := hostKey{View: View{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains, Whole: true}
	if v := x.services.routing(c, view, scope.Sought{Host: scope.Host{Scope: view.Scope, Host: s.Host}, Via: via}, 0); v != nil {
		k.View, k.Service = x.services.sender(c, view, v.Key), v.Key
	}
	return x.virtualHost.Of(c, k)
}
