// Package route makes Envoy's routes out of virtual services, and the virtual hosts that hold them.
package route

import (
	"slices"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Source is what routes ask about who sends the requests.
type Source struct {
	// Gateways that the proxy is, MeshGateway for sidecars.
	Gateways []string
	// Port is where the requests arrive.
	Port uint32
	// Selected reports whether the proxy has the labels, and is of the namespace where one is
	// given.
	Selected func(labels map[string]string, namespace string) bool
	// PortOf is the port that a destination means when it names none.
	PortOf func(host string) uint32
	// Rule is the client's rule for a host; nil without one.
	Rule func(host string) *networking.DestinationRule
	// Retries is the mesh's default.
	Retries *networking.HTTPRetry
	// TLS: requests come in TLS that the proxy opens.
	TLS bool
	// ForwardedHost: where the host is rewritten, the one that was asked for is said.
	ForwardedHost bool
}

// Build makes the routes of a virtual service. It stops behind a route that takes every request:
// nothing would reach the rest.
func Build(v *config.VirtualService, s Source) []*routev3.Route { return BuildSome(v, v.Spec.Http, s) }

// BuildSome is Build of some routes of a virtual service.
func BuildSome(v *config.VirtualService, some []*networking.HTTPRoute, s Source) []*routev3.Route {
	var out []*routev3.Route
	for _, h := range some {
		b := builder{Source: s, service: v, in: h}
		matches := h.Match
		if len(matches) == 0 {
			matches = []*networking.HTTPMatchRequest{nil}
		}
		for _, m := range matches {
			if !s.admits(m) {
				continue
			}
			r := b.route(m)
			out = append(out, r)
			if TakesAll(r) {
				return out
			}
		}
	}
	return out
}

// admits reports whether requests from this source can match at all. A match that names gateways
// asks nothing else of who sends.
func (s *Source) admits(m *networking.HTTPMatchRequest) bool {
	if m == nil {
		return true
	}
	if m.Port != 0 && m.Port != s.Port {
		return false
	}
	if len(m.Gateways) > 0 {
		return slices.ContainsFunc(m.Gateways, func(g string) bool { return slices.Contains(s.Gateways, g) })
	}
	return len(m.SourceLabels) == 0 && m.SourceNamespace == "" || s.Selected(m.SourceLabels, m.SourceNamespace)
}

// TakesAll reports whether every request matches a route.
func TakesAll(r *routev3.Route) bool {
	m := r.GetMatch()
	if len(m.Headers) > 0 || len(m.QueryParameters) > 0 || len(m.DynamicMetadata) > 0 {
		return false
	}
	switch p := m.PathSpecifier.(type) {
	case *routev3.RouteMatch_Prefix:
		return p.Prefix == "/"
	case *routev3.RouteMatch_PathSeparatedPrefix:
		return p.PathSeparatedPrefix == "/"
	case *routev3.RouteMatch_SafeRegex:
		return p.SafeRegex.GetRegex() == ".*"
	}
	return false
}

// builder makes the routes of one HTTPRoute.
type builder struct {
	Source
	service *config.VirtualService
	in      *networking.HTTPRoute
}

func (b *builder) route(m *networking.HTTPMatchRequest) *routev3.Route {
	out := &routev3.Route{
		Name:       b.name(m),
		Match:      match(m, b.service.Separated),
		Metadata:   origin(b.service.Path("virtual-service")),
		StatPrefix: m.GetStatPrefix(),
	}
	ops := operationsOf(b.in.Headers)
	ops.apply(out)
	switch {
	case b.in.Redirect != nil:
		out.Action = b.redirect(out.Match)
	case b.in.DirectResponse != nil:
		out.Action = directResponse(b.in.DirectResponse)
	default:
		b.forward(out, ops.authority)
	}
	out.Decorator = &routev3.Decorator{Operation: operation(out, b.service.Name, b.Port)}
	b.perFilter(out)
	return out
}

// name joins the names of the route and of the match.
func (b *builder) name(m *networking.HTTPMatchRequest) string {
	if m.GetName() == "" {
		return b.in.Name
	}
	return b.in.Name + "." + m.Name
}

func origin(path string) *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": encode.Struct(map[string]any{"config": path})}}
}

// operation names a route's requests in traces: by their destination if there is one, otherwise by
// the virtual service.
func operation(r *routev3.Route, service string, port uint32) string {
	path := "/*"
	switch p := r.Match.PathSpecifier.(type) {
	case *routev3.RouteMatch_Prefix:
		path = p.Prefix + "*"
	case *routev3.RouteMatch_Path:
		path = p.Path
	case *routev3.RouteMatch_SafeRegex:
		path = p.SafeRegex.GetRegex()
	}
	host := service
	if n, ok := cluster.ParseName(r.GetRoute().GetCluster()); ok {
		host, port = n.Host, n.Port
	}
	return host + ":" + strconv.FormatUint(uint64(port), 10) + path
}
