package routes

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/selection"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routesKey names the routes of a virtual service at a port, for senders (see sender).
type routesKey struct {
	View    View
	Service string
	Port    uint32
	// TLS: requests come in TLS that a gateway opens.
	TLS bool
}

// services are the routes of virtual services.
type services struct {
	from   *From
	routes *incr.Func[routesKey, []*routev3.Route]
	// delegated are those of one delegate: where Envoy would refuse them, its root's others go on.
	delegated *incr.Func[Delegated, []*routev3.Route]
	asks      *incr.Func[string, asks]
}

func newServices(graph *incr.Graph, from *From) *services {
	x := &services{from: from}
	x.routes = incr.NewFunc(graph, "routes of virtual service", nil, x.build)
	x.delegated = incr.NewFunc(graph, "routes of delegate", nil, x.buildDelegated)
	x.asks = incr.NewFunc(graph, "asked of senders", incr.Same[asks], x.findAsks)
	return x
}

// routing is the virtual service that routes a view's requests for a host at a port: the first that
// has routes for them. nil: none does.
func (x *services) routing(c *incr.Ctx, view View, h scope.Sought, port uint32) *config.VirtualService {
	for _, v := range x.from.Scopes.VirtualServices.For(c, h) {
		if len(x.of(c, view, v, port)) > 0 {
			return v
		}
	}
	return nil
}

func (x *services) of(c *incr.Ctx, view View, v *config.VirtualService, port uint32) []*routev3.Route {
	return x.routes.Of(c, routesKey{View: x.sender(c, view, v.Key), Service: v.Key, Port: port})
}

// sender is what the routes of a virtual service depend on of a view.
func (x *services) sender(c *incr.Ctx, view View, service string) View {
	out := View{Scope: view.Scope, Gateways: view.Gateways, Headers: view.Headers}
	asks := x.asks.Of(c, service)
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

func (x *services) findAsks(c *incr.Ctx, service string) (asks, error) {
	var out asks
	v, ok := x.from.Scopes.VirtualServices.Whole(c, service)
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

func (x *services) build(c *incr.Ctx, k routesKey) ([]*routev3.Route, error) {
	v, ok := x.from.Scopes.VirtualServices.Whole(c, k.Service)
	if !ok {
		return nil, incr.Absent
	}
	if len(v.Delegations) > 0 {
		return x.joined(c, k, v)
	}
	return checked(route.Build(v, x.sourceFor(c, k, v)))
}

// sourceFor is what the routes of a virtual service ask.
func (x *services) sourceFor(c *incr.Ctx, k routesKey, v *config.VirtualService) route.Source {
	from := x.source(c, k.View, k.Port)
	from.TLS = k.TLS
	if k.View.Gateways != "" {
		from.PortOf = func(h string) uint32 { return x.portFrom(c, k.View.Scope, v.Namespace, h, k.Port) }
	}
	return from
}

// checked are routes of which Envoy would refuse none: of one such route it would refuse those of
// all others, too.
func checked(routes []*routev3.Route) ([]*routev3.Route, error) {
	for _, r := range routes {
		if err := encode.Check(r); err != nil {
			return nil, err
		}
	}
	return routes, nil
}

// source is what the routes of a view ask.
func (x *services) source(c *incr.Ctx, view View, port uint32) route.Source {
	selected := selection.Answers(view.Selections)
	out := route.Source{
		Gateways: []string{config.MeshGateway},
		Port:     port,
		Selected: func(labels map[string]string, namespace string) bool {
			return (namespace == "" || namespace == view.Namespace) && selected(labels)
		},
		PortOf:  func(string) uint32 { return port }, // a sidecar sees of services only the port at which a request came
		Rule:    func(h string) *networking.DestinationRule { return x.from.Destinations.Rule(c, view.Scope, h) },
		Retries: x.from.Mesh.Retries(c),

		ForwardedHost: view.Headers.ForwardedHost,
	}
	if view.Gateways != "" {
		out.Gateways = slices.Collect(view.Gateways.All())
	}
	if port == 0 {
		out.PortOf = func(h string) uint32 { return x.from.Scopes.OnlyPort(c, scope.Host{Scope: view.Scope, Host: h}, port) }
	}
	return out
}

// portFrom is OnlyPort for requests at a gateway: the service of the virtual service's own
// namespace is meant rather than another of the host, if the gateway sees it.
func (x *services) portFrom(c *incr.Ctx, s scope.Scope, namespace, name string, fallback uint32) uint32 {
	own, ok := x.from.Tables.Services.Get(c, namespace+"/"+name)
	switch {
	case !ok || !x.from.Mesh.Sees(c, own.Value, s.Namespace):
		return x.from.Scopes.OnlyPort(c, scope.Host{Scope: s, Host: name}, fallback)
	case len(own.Value.Ports) == 1:
		return own.Value.Ports[0].Number
	}
	return fallback
}
