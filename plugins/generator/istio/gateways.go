package istio

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// gateways: the Gateways that select a proxy make its listeners together, port by port.
type gateways struct {
	servers         *incr.Func[string, []server]
	gatewayListener *incr.Func[gatewayListenerKey, []byte]
}

// server is a server of a Gateway.
type server struct {
	gateway *config.Gateway
	spec    *networking.Server
}

// plainHTTP reports whether the server takes requests without TLS.
func (s server) plainHTTP() bool {
	tls := s.spec.GetTls()
	return config.ParseProtocol(s.spec.GetPort().GetProtocol()).IsHTTP() && (tls == nil || tls.HttpsRedirect)
}

func (s server) bind() listener.Bind {
	return listener.Bind{Address: cmp.Or(s.spec.Bind, "0.0.0.0"), Port: s.spec.GetPort().GetNumber()}
}

type gatewayListenerKey struct {
	Bind  listener.Bind
	Proxy listener.Proxy
}

const gatewayRoutePrefix = "http."

func (g *graph) addGateways() {
	g.servers = incr.NewFunc(g.Graph, "servers of gateways", nil, func(c *incr.Ctx, keys string) ([]server, error) {
		var out []server
		for _, k := range strings.Split(keys, ",") {
			if r, ok := g.gatewayRows.Get(c, k); ok {
				for _, s := range r.value.Spec.Servers {
					out = append(out, server{r.value, s})
				}
			}
		}
		return out, nil
	})
	g.gatewayListener = incr.NewFunc(g.Graph, "gateway listener", bytes.Equal, func(_ *incr.Ctx, k gatewayListenerKey) ([]byte, error) {
		return encode.Bytes(listener.BuildGateway(listener.Gateway{
			Bind:  k.Bind,
			Route: gatewayRoutePrefix + portName(k.Bind.Port),
			Proxy: k.Proxy,
		})), nil
	})
}

// selectedGateways are the keys of the Gateways that select a proxy, the oldest first, joined.
func (g *graph) selectedGateways(c *incr.Ctx, labels map[string]string) string {
	var found []*config.Gateway
	for _, i := range g.gatewayRows.All(c) {
		if config.Selects(i.Value.value.Spec.Selector, labels) {
			found = append(found, i.Value.value)
		}
	}
	slices.SortFunc(found, func(a, b *config.Gateway) int { return a.Before(b.Meta) })
	keys := make([]string, len(found))
	for i, f := range found {
		keys[i] = f.Key
	}
	return strings.Join(keys, ",")
}

// gatewayBinds are the places at which Gateways take plain HTTP, in order.
func (g *graph) gatewayBinds(c *incr.Ctx, keys string) []listener.Bind {
	var out []listener.Bind
	for _, s := range g.servers.Of(c, keys) {
		if b := s.bind(); s.plainHTTP() && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b listener.Bind) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Address, b.Address))
	})
	return out
}

// gatewayRoute makes http.PORT. Names that no server has mean nothing.
func (g *graph) gatewayRoute(c *incr.Ctx, k routeKey) ([]byte, error) {
	number, ok := strings.CutPrefix(k.Name, gatewayRoutePrefix)
	var servers []route.Server
	var port uint32
	for _, s := range g.servers.Of(c, k.View.Gateways) {
		if ok && s.plainHTTP() && portName(s.spec.Port.Number) == number {
			port = s.spec.Port.Number
			servers = append(servers, g.routeServer(c, k.View.Scope, s))
		}
	}
	if len(servers) == 0 {
		return route.Empty(k.Name), nil
	}
	var hosts [][]byte
	for _, h := range route.GatewayHosts(port, servers, func(v *config.VirtualService) []*routev3.Route {
		return g.routesOf(c, k.View, v, port)
	}) {
		hosts = append(hosts, encode.Bytes(h))
	}
	return route.Configuration(k.Name, hosts), nil
}

func (g *graph) routeServer(c *incr.Ctx, s Scope, from server) route.Server {
	out := route.Server{
		Hosts:         from.spec.Hosts,
		Namespace:     from.gateway.Namespace,
		HTTPSRedirect: from.spec.GetTls().GetHttpsRedirect(),
	}
	defaults := g.exports.Of(c, only).virtualServices
	for _, i := range g.atGateway.Of(c, from.gateway.Key) {
		if v := i.Value.value; v.VisibleIn(s.Namespace, defaults) {
			out.Services = append(out.Services, v)
		}
	}
	slices.SortStableFunc(out.Services, func(a, b *config.VirtualService) int { return a.Before(b.Meta) })
	return out
}
