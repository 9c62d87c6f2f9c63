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
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routes: a route configuration is joined from virtual hosts, each of which is encoded once.
type routes struct {
	selectors incr.Collection[string, struct{}]
	// connectionSelectors are those of routes for connections.
	connectionSelectors incr.Collection[string, struct{}]
	serviceByHost       *incr.Index[string, string, row[*config.VirtualService]]
	wildServices        *incr.Index[string, string, row[*config.VirtualService]]
	atGateway           *incr.Index[string, string, row[*config.VirtualService]]
	onPort              *incr.Index[scopePort, hostPort, *config.Service]
	serviceFor          *incr.Func[host, *config.VirtualService]
	routedPorts         *incr.Func[routedKey, []uint32]
	whole               *incr.Func[string, *config.VirtualService]
	hostRoutes          *incr.Func[hostRoutesKey, []*routev3.Route]
	virtualHost         *incr.Func[virtualHostKey, []byte]
	rest                *incr.Func[string, []byte]
	route               *incr.Func[routeKey, []byte]
}

// routeView is what routes depend on of the proxies that use them.
type routeView struct {
	Scope Scope
	// Domain completes short host names.
	Domain string
	// Dialing says which addresses of services count.
	Dialing config.Dialing
	// Selections are the source selectors that the proxies answer.
	Selections string
	// Gateways that the proxies are (keys, joined), and where they listen for their ports (see gatewayKey); empty for sidecars.
	Gateways, Ports string
}

type routeKey struct {
	View routeView
	Name string
}

type scopePort struct {
	Scope Scope
	Port  uint32
}

type hostPort struct {
	Scope Scope
	Host  string
	Port  uint32
}

// hostRoutesKey names the routes of a virtual service at a port.
type hostRoutesKey struct {
	View    routeView
	Service string
	Port    uint32
}

// virtualHostKey names a virtual host of a sidecar.
type virtualHostKey struct {
	View routeView
	Host string
	Port uint32
	// Domains, joined by spaces: usually all by which the host may be called.
	Domains string
	// Service is the virtual service whose routes it has (key); empty: the default route.
	Service string
}

func joinDomains(list []string) string { return strings.Join(list, " ") }

func portName(port uint32) string { return strconv.FormatUint(uint64(port), 10) }

func (g *graph) addRoutes() {
	g.selectors = g.addSelectors("source selectors", requestSelectors)
	g.indexServices()
	g.addDelegates()
	ports := incr.FlatMap(g.visible, "HTTP ports", sameService,
		func(c *incr.Ctx, h host, s *config.Service) ([]incr.Item[hostPort, *config.Service], error) {
			return g.requestPorts(c, h, s), nil
		})
	g.onPort = incr.NewIndex(ports, "hosts on port", func(k hostPort, _ *config.Service) []scopePort { return []scopePort{{k.Scope, k.Port}} })
	g.hostRoutes = incr.NewFunc(g.Graph, "routes of virtual service", nil, g.buildHostRoutes)
	g.virtualHost = incr.NewFunc(g.Graph, "virtual host", bytes.Equal, g.buildVirtualHost)
	g.rest = incr.NewFunc(g.Graph, "other hosts", bytes.Equal, func(_ *incr.Ctx, outside string) ([]byte, error) {
		if outside == cluster.BlackHole {
			return encode.Bytes(route.BlockAll()), nil
		}
		return encode.Bytes(route.AllowAny(outside)), nil
	})
	g.route = incr.NewFunc(g.Graph, "route configuration", bytes.Equal, func(c *incr.Ctx, k routeKey) ([]byte, error) {
		if k.View.Gateways != "" {
			return g.gatewayRoute(c, k)
		}
		return g.sidecarRoute(c, k), nil
	})
}

// sidecarRoute makes the route configuration that a sidecar's listener asks for: PORT, or HOST:PORT. Other names mean nothing.
func (g *graph) sidecarRoute(c *incr.Ctx, k routeKey) []byte {
	if port, err := strconv.ParseUint(k.Name, 10, 16); err == nil {
		return g.portRoute(c, k, uint32(port))
	}
	name, number, _ := cutLast(k.Name, ":")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return route.Empty(k.Name)
	}
	s, ok := g.visible.Get(c, host{k.View.Scope, name})
	if !ok || s.Port(uint32(port)) == nil {
		return route.Empty(k.Name)
	}
	hosts := [][]byte{g.hostOf(c, k.View, s, uint32(port), []string{"*"})}
	return route.Configuration(k.Name, hosts)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// portRoute joins the virtual hosts of all services at a port. A domain belongs to the oldest that claims it: Envoy refuses
// to have it twice.
func (g *graph) portRoute(c *incr.Ctx, k routeKey, port uint32) []byte {
	members := slices.Clone(g.onPort.Of(c, scopePort{k.View.Scope, port}))
	slices.SortStableFunc(members, func(a, b incr.Item[hostPort, *config.Service]) int { return config.Older(a.Value, b.Value) })
	taken := map[string]bool{"*": true}
	var hosts [][]byte
	for _, m := range members {
		domains := claim(taken, route.Domains(m.Key.Host, k.View.Domain, m.Value.AddressesFor(k.View.Dialing)[0]))
		if len(domains) > 0 {
			hosts = append(hosts, g.hostOf(c, k.View, m.Value, port, domains))
		}
	}
	hosts = append(hosts, g.outsideHosts(c, k.View, port, taken)...)
	return route.Configuration(k.Name, append(hosts, g.rest.Of(c, g.outside(c, k.View.Scope))))
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
func (g *graph) hostOf(c *incr.Ctx, view routeView, s *config.Service, port uint32, domains []string) []byte {
	k := virtualHostKey{View: view, Host: s.Host, Port: port, Domains: joinDomains(domains)}
	if v, ok := g.serviceFor.Get(c, host{view.Scope, s.Host}); ok && len(g.routesOf(c, view, v, port)) > 0 {
		k.Service = v.Key
	}
	return g.virtualHost.Of(c, k)
}

func (g *graph) routesOf(c *incr.Ctx, view routeView, v *config.VirtualService, port uint32) []*routev3.Route {
	return g.hostRoutes.Of(c, hostRoutesKey{view, v.Key, port})
}

func (g *graph) buildVirtualHost(c *incr.Ctx, k virtualHostKey) ([]byte, error) {
	var list []*routev3.Route
	if k.Service != "" {
		list = g.hostRoutes.Of(c, hostRoutesKey{k.View, k.Service, k.Port})
	} else {
		to := cluster.Name{Port: k.Port, Host: k.Host}
		list = []*routev3.Route{route.Default(to, g.policyTowards(c, k.View.Scope, to), g.retries.Of(c, only))}
	}
	return encode.Bytes(route.VirtualHost(route.HostName(k.Host, k.Port), strings.Split(k.Domains, " "), list)), nil
}

func (g *graph) buildHostRoutes(c *incr.Ctx, k hostRoutesKey) ([]*routev3.Route, error) {
	v, ok := g.whole.Get(c, k.Service)
	if !ok {
		return nil, incr.Absent
	}
	return route.Build(v, g.source(c, k.View, k.Port)), nil
}

// source is what the routes of a view ask.
func (g *graph) source(c *incr.Ctx, view routeView, port uint32) route.Source {
	selected := answers(view.Selections)
	out := route.Source{
		Gateways: []string{config.MeshGateway},
		Port:     port,
		Selected: func(labels map[string]string, namespace string) bool {
			return (namespace == "" || namespace == view.Scope.Namespace) && selected(labels)
		},
		PortOf:  func(h string) uint32 { return g.onlyPort(c, host{view.Scope, h}, port) },
		Policy:  func(n cluster.Name) *networking.TrafficPolicy { return g.policyTowards(c, view.Scope, n) },
		Retries: g.retries.Of(c, only),
	}
	if view.Gateways != "" {
		out.Gateways = strings.Split(view.Gateways, ",")
	}
	return out
}

// onlyPort is the port of a service that has one, otherwise the one at which the request came.
func (g *graph) onlyPort(c *incr.Ctx, h host, fallback uint32) uint32 {
	if s, ok := g.visible.Get(c, h); ok && len(s.Ports) == 1 {
		return s.Ports[0].Number
	}
	return fallback
}

// policyTowards is a client's traffic policy towards a cluster, nil without one.
func (g *graph) policyTowards(c *incr.Ctx, s Scope, n cluster.Name) *networking.TrafficPolicy {
	service, ok := g.visible.Get(c, host{s, n.Host})
	if !ok {
		return nil
	}
	return cluster.PolicyFor(policyOf(g.ruleFor(c, s, service)), n.Subset, n.Port)
}
