package routes

import (
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// hostKey names a virtual host of a sidecar. View has no more than its routes depend on, so that
// views share it.
type hostKey struct {
	View View
	Host string
	Port uint32
	// Domains, joined by spaces: usually all by which the host may be called.
	Domains string
	// Service is the virtual service whose routes it has (key); empty: the default route.
	Service string
	// Whole: requests came where the port says nothing of the service's.
	Whole bool
}

// asked is the port by which its routes are chosen; 0 where requests say nothing of it.
func (k *hostKey) asked() uint32 {
	if k.Whole {
		return 0
	}
	return k.Port
}

func joinDomains(list []string) string { return strings.Join(list, " ") }

// without are joined domains but for those that are taken.
func without(domains string, taken claims) string {
	if len(taken) == 0 {
		return domains
	}
	return joinDomains(slices.DeleteFunc(strings.Split(domains, " "), taken.has))
}

// ofSidecar makes the route configuration that a sidecar's listener asks for: PORT, HOST:PORT, that
// of a Unix socket, or http_proxy. Other names mean nothing.
func (x *Routes) ofSidecar(c *incr.Ctx, k Key) [][]byte {
	port, err := strconv.ParseUint(k.Name, 10, 16)
	if l, ok := x.wholeEgress(c, k.View.Scope, k.Name, uint32(port)); ok {
		return x.wholeRoute(c, k, l)
	}
	if k.Name == route.HTTPProxy { // its egress listeners are for other ports
		return route.Configuration(k.Name, [][]byte{x.otherHosts(c, k.View)})
	}
	if err == nil {
		return x.portRoute(c, k, uint32(port))
	}
	name, number, _ := cutLast(k.Name, ":")
	port, err = strconv.ParseUint(number, 10, 16)
	if err != nil {
		return route.Empty(k.Name)
	}
	s, ok := x.from.Scopes.Visible.Get(c, scope.Host{Scope: k.View.Scope, Host: name})
	if !ok || s.Port(uint32(port)) == nil {
		return route.Empty(k.Name)
	}
	hosts := [][]byte{x.hostOf(c, k.View, s, uint32(port), "*")}
	return route.Configuration(k.Name, hosts)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// portRoute joins the virtual hosts of all services at a port.
func (x *Routes) portRoute(c *incr.Ctx, k Key, port uint32) [][]byte {
	named := x.names.named.Of(c, namesOf(k.View, port))
	hosts, taken := x.outsideHosts(c, k.View, port)
	hosts = slices.Grow(hosts, len(named)+1)
	if len(taken) > 0 {
		hosts = append(hosts, x.theirHosts(c, k.View, port, named, taken)...)
		slices.SortStableFunc(hosts, route.CompareNames)
	} else {
		for first := 0; first < len(named); first += hostsAtOnce {
			hosts = append(hosts, x.someHosts.Of(c, someHostsKey{k.View, port, first})...)
		}
	}
	return route.Configuration(k.Name, append(hosts, x.otherHosts(c, k.View)))
}

// theirHosts are the virtual hosts of services, as far as their domains are not taken.
func (x *Routes) theirHosts(c *incr.Ctx, view View, port uint32, named []namedHost, taken claims) [][]byte {
	hosts := make([][]byte, 0, len(named))
	for _, h := range named {
		if domains := without(h.domains.Value(), taken); domains != "" {
			hosts = append(hosts, x.hostOf(c, view, h.service, port, domains))
		}
	}
	return hosts
}

// hostOf is the virtual host of a service.
func (x *Routes) hostOf(c *incr.Ctx, view View, s *config.Service, port uint32, domains string) []byte {
	k := hostKey{View: View{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains}
	if v := x.services.routing(c, view,
		scope.Sought{Host: scope.Host{Scope: view.Scope, Host: s.Host}, Via: x.from.Scopes.Sidecars.Via(c, view.Scope, port)},
		port); v != nil {
		k.View, k.Service = x.services.sender(c, view, v.Key), v.Key
	}
	body, ok := x.virtualHost.Get(c, k)
	if !ok && k.Service != "" {
		// With this virtual service it never was what Envoy takes: what was there before is the
		// host without it.
		plain := hostKey{View: View{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains}
		return x.virtualHost.Of(c, plain)
	}
	return body
}

func (x *Routes) buildVirtualHost(c *incr.Ctx, k hostKey) ([]byte, error) {
	var list []*routev3.Route
	if k.Service != "" {
		list = x.services.routes.Of(c, routesKey{View: k.View, Service: k.Service, Port: k.asked()})
	} else {
		to := cluster.Name{Port: k.Port, Host: k.Host}
		list = []*routev3.Route{route.Default(to, x.from.Destinations.Rule(c, k.View.Scope, k.Host), x.from.Mesh.Retries(c))}
	}
	h := route.VirtualHost(route.HostName(k.Host, k.Port), strings.Split(k.Domains, " "), list)
	h.IncludeRequestAttemptCount = !k.View.Headers.NoAttempts
	h.TypedPerFilterConfig = x.sessions.to(c, scope.Host{Scope: k.View.Scope, Host: k.Host})
	return route.EncodedHost(h), nil
}
