package istio

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routes: a route configuration is a list of virtual hosts, each of which is encoded once for all.
type routes struct {
	hostRoutes  *incr.Func[hostRoutesKey, []*routev3.Route]
	asks        *incr.Func[string, asks]
	commonHosts *incr.Func[namesKey, []commonHost]
	namedHosts  *incr.Func[namesKey, []namedHost]
	someNamed   *incr.Func[someHostsKey, []namedHost]
	someHosts   *incr.Func[someHostsKey, [][]byte]
	virtualHost *incr.Func[virtualHostKey, []byte]
	rest        *incr.Func[restKey, []byte]
	route       *incr.Func[routeKey, [][]byte]
}

// routeView is what routes depend on of the proxies that use them.
type routeView struct {
	Scope scope.Scope
	// Namespace is the proxies' own, for which matches may ask.
	Namespace string
	// Domain completes short host names.
	Domain string
	// Dialing says which addresses of services count.
	Dialing config.Dialing
	// Selections are the source selectors that the proxies answer.
	Selections string
	// Gateways that the proxies are (keys, joined), and where they listen for their ports (see gateways.Key); empty for sidecars.
	Gateways, Ports string
	// Patches change them (patches.Keys).
	Patches string
	// Headers say what proxies add to requests.
	Headers routeHeaders
}

// routeHeaders are the settings of proxies (ProxyConfig.proxyHeaders) that routes heed.
type routeHeaders struct {
	// NoAttempts: the number of attempts stays unsaid. ForwardedHost: where the host is rewritten, the one that was asked for is said.
	NoAttempts, ForwardedHost bool
}

// restKey is what the virtual host for unknown hosts depends on: the cluster for what no service is, and the headers.
type restKey struct {
	Outside string
	Headers routeHeaders
}

type routeKey struct {
	View routeView
	Name string
}

// hostRoutesKey names the routes of a virtual service at a port, for senders (see sender).
type hostRoutesKey struct {
	View    routeView
	Service string
	Port    uint32
	// TLS: requests come in TLS that a gateway opens.
	TLS bool
}

// virtualHostKey names a virtual host of a sidecar. View has no more than its routes depend on, so that views share it.
type virtualHostKey struct {
	View routeView
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
func (k *virtualHostKey) asked() uint32 {
	if k.Whole {
		return 0
	}
	return k.Port
}

// equalFields reports whether resources in fields are the same.
func equalFields(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func joinDomains(list []string) string { return strings.Join(list, " ") }

// without are joined domains but for those that are taken.
func without(domains string, taken map[string]bool) string {
	if len(taken) == 0 {
		return domains
	}
	return joinDomains(slices.DeleteFunc(strings.Split(domains, " "), func(d string) bool { return taken[d] }))
}

func portName(port uint32) string { return strconv.FormatUint(uint64(port), 10) }

func (g *graph) addRoutes() {
	g.hostRoutes = incr.NewFunc(g.Graph, "routes of virtual service", nil, g.buildHostRoutes)
	g.asks = incr.NewFunc(g.Graph, "asked of senders", incr.Same[asks], g.findAsks)
	g.addNamedHosts()
	g.virtualHost = incr.NewFunc(g.Graph, "virtual host", bytes.Equal, g.buildVirtualHost)
	g.someHosts = incr.NewFunc(g.Graph, "some virtual hosts", equalFields,
		func(c *incr.Ctx, k someHostsKey) ([][]byte, error) {
			return g.theirHosts(c, k.View, k.Port, g.someNamed.Of(c, k), nil), nil
		})
	g.rest = incr.NewFunc(g.Graph, "other hosts", bytes.Equal, func(_ *incr.Ctx, k restKey) ([]byte, error) {
		h := route.BlockAll()
		if k.Outside != cluster.BlackHole {
			h = route.AllowAny(k.Outside, k.Headers.ForwardedHost)
		}
		h.IncludeRequestAttemptCount = !k.Headers.NoAttempts
		return route.EncodedHost(h), nil
	})
	g.route = incr.NewFunc(g.Graph, "route configuration", equalFields, func(c *incr.Ctx, k routeKey) ([][]byte, error) {
		if k.View.Patches != "" {
			return g.patchedRoute(c, k), nil
		}
		if k.View.Gateways != "" {
			return g.gatewayRoute(c, k)
		}
		return g.sidecarRoute(c, k), nil
	})
}

// sidecarRoute makes the route configuration that a sidecar's listener asks for: PORT, HOST:PORT, that of a Unix socket, or http_proxy. Other names mean nothing.
func (g *graph) sidecarRoute(c *incr.Ctx, k routeKey) [][]byte {
	port, err := strconv.ParseUint(k.Name, 10, 16)
	if l, ok := g.wholeEgress(c, k.View.Scope, k.Name, uint32(port)); ok {
		return g.wholeRoute(c, k, l)
	}
	if k.Name == proxyRoute { // its egress listeners are for other ports
		return route.Configuration(k.Name, [][]byte{g.otherHosts(c, k.View)})
	}
	if err == nil {
		return g.portRoute(c, k, uint32(port))
	}
	name, number, _ := cutLast(k.Name, ":")
	port, err = strconv.ParseUint(number, 10, 16)
	if err != nil {
		return route.Empty(k.Name)
	}
	s, ok := g.scopes.Visible.Get(c, scope.Host{Scope: k.View.Scope, Host: name})
	if !ok || s.Port(uint32(port)) == nil {
		return route.Empty(k.Name)
	}
	hosts := [][]byte{g.hostOf(c, k.View, s, uint32(port), "*")}
	return route.Configuration(k.Name, hosts)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// portRoute joins the virtual hosts of all services at a port.
func (g *graph) portRoute(c *incr.Ctx, k routeKey, port uint32) [][]byte {
	named := g.namedHosts.Of(c, namesOf(k.View, port))
	hosts, taken := g.outsideHosts(c, k.View, port)
	hosts = slices.Grow(hosts, len(named)+1)
	if len(taken) > 0 {
		hosts = append(hosts, g.theirHosts(c, k.View, port, named, taken)...)
	} else {
		for first := 0; first < len(named); first += hostsAtOnce {
			hosts = append(hosts, g.someHosts.Of(c, someHostsKey{k.View, port, first})...)
		}
	}
	return route.Configuration(k.Name, append(hosts, g.otherHosts(c, k.View)))
}

// theirHosts are the virtual hosts of services, as far as their domains are not taken.
func (g *graph) theirHosts(c *incr.Ctx, view routeView, port uint32, named []namedHost, taken map[string]bool) [][]byte {
	hosts := make([][]byte, 0, len(named))
	for _, h := range named {
		if domains := without(h.domains.Value(), taken); domains != "" {
			hosts = append(hosts, g.hostOf(c, view, h.service, port, domains))
		}
	}
	return hosts
}

// claim returns the domains that nobody had, and takes them. A host whose own name is taken gets none.
func claim(taken map[string]bool, domains []string) []string {
	if len(domains) > 0 && taken[domains[0]] {
		return nil
	}
	var out []string
	for _, d := range domains {
		if !taken[d] {
			taken[d] = true
			out = append(out, d)
		}
	}
	return out
}

// hostOf is the virtual host of a service.
func (g *graph) hostOf(c *incr.Ctx, view routeView, s *config.Service, port uint32, domains string) []byte {
	k := virtualHostKey{View: routeView{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains}
	if v := g.routing(c, view, scope.Sought{Host: scope.Host{Scope: view.Scope, Host: s.Host}, Via: g.scopes.Via(c, view.Scope, port)}, port); v != nil {
		k.View, k.Service = g.sender(c, view, v.Key), v.Key
	}
	body, ok := g.virtualHost.Get(c, k)
	if !ok && k.Service != "" {
		// With this virtual service it never was what Envoy takes: what was there before is the host without it.
		plain := virtualHostKey{View: routeView{Scope: view.Scope, Headers: view.Headers}, Host: s.Host, Port: port, Domains: domains}
		return g.virtualHost.Of(c, plain)
	}
	return body
}

// routing is the virtual service that routes a view's requests for a host at a port: the first that has routes for them. nil: none does.
func (g *graph) routing(c *incr.Ctx, view routeView, h scope.Sought, port uint32) *config.VirtualService {
	for _, v := range g.scopes.ServicesFor.Of(c, h) {
		if len(g.routesOf(c, view, v, port)) > 0 {
			return v
		}
	}
	return nil
}

func (g *graph) routesOf(c *incr.Ctx, view routeView, v *config.VirtualService, port uint32) []*routev3.Route {
	return g.hostRoutes.Of(c, hostRoutesKey{View: g.sender(c, view, v.Key), Service: v.Key, Port: port})
}

// sender is what the routes of a virtual service depend on of a view.
func (g *graph) sender(c *incr.Ctx, view routeView, service string) routeView {
	out := routeView{Scope: view.Scope, Gateways: view.Gateways, Headers: view.Headers}
	asks := g.asks.Of(c, service)
	if asks.namespace {
		out.Namespace = view.Namespace
	}
	if asks.labels {
		out.Selections = view.Selections
	}
	return out
}

// asks is what matches of a virtual service ask of who sends requests.
type asks struct{ namespace, labels bool }

func (g *graph) findAsks(c *incr.Ctx, service string) (asks, error) {
	var out asks
	v, ok := g.scopes.Whole.Get(c, service)
	if !ok {
		return out, incr.Absent
	}
	for _, h := range v.Spec.Http {
		for _, m := range h.Match {
			out.namespace = out.namespace || m.SourceNamespace != ""
			out.labels = out.labels || len(m.SourceLabels) > 0
		}
	}
	return out, nil
}

func (g *graph) buildVirtualHost(c *incr.Ctx, k virtualHostKey) ([]byte, error) {
	var list []*routev3.Route
	if k.Service != "" {
		list = g.hostRoutes.Of(c, hostRoutesKey{View: k.View, Service: k.Service, Port: k.asked()})
	} else {
		to := cluster.Name{Port: k.Port, Host: k.Host}
		list = []*routev3.Route{route.Default(to, g.destinations.Rule(c, k.View.Scope, k.Host), g.mesh.Retries(c))}
	}
	h := route.VirtualHost(route.HostName(k.Host, k.Port), strings.Split(k.Domains, " "), list)
	h.IncludeRequestAttemptCount = !k.View.Headers.NoAttempts
	h.TypedPerFilterConfig = g.sessionsTo(c, scope.Host{Scope: k.View.Scope, Host: k.Host})
	return route.EncodedHost(h), nil
}

func (g *graph) buildHostRoutes(c *incr.Ctx, k hostRoutesKey) ([]*routev3.Route, error) {
	v, ok := g.scopes.Whole.Get(c, k.Service)
	if !ok {
		return nil, incr.Absent
	}
	from := g.source(c, k.View, k.Port)
	from.TLS = k.TLS
	if k.View.Gateways != "" {
		from.PortOf = func(h string) uint32 { return g.portFrom(c, k.View.Scope, v.Namespace, h, k.Port) }
	}
	return route.Build(v, from), nil
}

// source is what the routes of a view ask.
func (g *graph) source(c *incr.Ctx, view routeView, port uint32) route.Source {
	selected := selection.Answers(view.Selections)
	out := route.Source{
		Gateways: []string{config.MeshGateway},
		Port:     port,
		Selected: func(labels map[string]string, namespace string) bool {
			return (namespace == "" || namespace == view.Namespace) && selected(labels)
		},
		PortOf:  func(string) uint32 { return port }, // a sidecar sees of services only the port at which a request came
		Rule:    func(h string) *networking.DestinationRule { return g.destinations.Rule(c, view.Scope, h) },
		Retries: g.mesh.Retries(c),

		ForwardedHost: view.Headers.ForwardedHost,
	}
	if view.Gateways != "" {
		out.Gateways = strings.Split(view.Gateways, ",")
	}
	if port == 0 {
		out.PortOf = func(h string) uint32 { return g.scopes.OnlyPort(c, scope.Host{Scope: view.Scope, Host: h}, port) }
	}
	return out
}

// portFrom is onlyPort for requests at a gateway: the service of the virtual service's own namespace is meant rather than another of the
// host, if the gateway sees it.
func (g *graph) portFrom(c *incr.Ctx, s scope.Scope, namespace, name string, fallback uint32) uint32 {
	own, ok := g.tables.Services.Get(c, namespace+"/"+name)
	switch {
	case !ok || !g.mesh.Sees(c, own.Value, s.Namespace):
		return g.scopes.OnlyPort(c, scope.Host{Scope: s, Host: name}, fallback)
	case len(own.Value.Ports) == 1:
		return own.Value.Ports[0].Number
	}
	return fallback
}

// headersOf are the settings of a proxy that its routes heed.
func (g *graph) headersOf(c *incr.Ctx, n *node.Node) routeHeaders {
	h := g.mesh.Proxy(c, n).GetProxyHeaders()
	return routeHeaders{NoAttempts: h.GetAttemptCount().GetDisabled().GetValue(), ForwardedHost: h.GetXForwardedHost().GetEnabled().GetValue()}
}
