package envoyfilter

import (
	"slices"
	"strconv"
	"strings"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Routes patches a route configuration. ports says which ports of Gateways are served at a port of
// the proxy, where they differ; it may be nil.
func (s *Set) Routes(c Context, body []byte, ports func(at uint32) []uint32) []byte {
	m := &route.RouteConfiguration{}
	if !s.hasRoutes() || proto.Unmarshal(body, m) != nil {
		return body
	}
	s.PatchRoutes(c, m, ports)
	return encode.Patched(m)
}

// PatchRoutes is Routes for those who see themselves to what Envoy would refuse.
func (s *Set) PatchRoutes(c Context, m *route.RouteConfiguration, ports func(at uint32) []uint32) {
	if s.hasRoutes() {
		r := routePatcher{Set: s, context: c, routes: m, ports: ports}
		r.whole()
	}
}

func (s *Set) hasRoutes() bool {
	return len(s.by[networking.EnvoyFilter_ROUTE_CONFIGURATION])+len(s.by[networking.EnvoyFilter_VIRTUAL_HOST])+
		len(s.by[networking.EnvoyFilter_HTTP_ROUTE]) > 0
}

// routePatcher patches one route configuration, from the outside to the inside.
type routePatcher struct {
	*Set
	context Context
	routes  *route.RouteConfiguration
	ports   func(at uint32) []uint32
}

func (r *routePatcher) patches(to networking.EnvoyFilter_ApplyTo) []*Patch {
	return r.of(to, r.context, func(p *Patch) bool { return r.matches(p.match.GetRouteConfiguration()) })
}

func (r *routePatcher) whole() {
	for _, p := range r.patches(networking.EnvoyFilter_ROUTE_CONFIGURATION) {
		if p.merges() {
			p.mergeInto(r.routes)
		}
	}
	r.hosts()
}

// matches asks the configuration's name and port; of gateways also the Gateway and its port's name,
// which only those for HTTPS say.
func (r *routePatcher) matches(m *networking.EnvoyFilter_RouteConfigurationMatch) bool {
	if m == nil {
		return true
	}
	own := r.named()
	return (m.Name == "" || m.Name == r.routes.Name) &&
		(m.PortNumber == 0 || r.servesPort(own.port, m.PortNumber)) &&
		(r.context != networking.EnvoyFilter_GATEWAY ||
			(m.PortName == "" || m.PortName == own.portName) && (m.Gateway == "" || m.Gateway == own.gateway))
}

func (r *routePatcher) servesPort(at, number uint32) bool {
	if r.ports != nil {
		if list := r.ports(at); len(list) > 0 {
			return slices.Contains(list, number)
		}
	}
	return at == number
}

type routeName struct {
	port              uint32
	portName, gateway string
}

// named reads a name: PORT or inbound|PORT|| of sidecars; http.PORT or
// https.PORT.PORTNAME.GATEWAY.NAMESPACE of gateways, either with the address of a server that binds
// to one behind it.
func (r *routePatcher) named() routeName {
	s := r.routes.Name
	if r.context != networking.EnvoyFilter_GATEWAY {
		if strings.HasPrefix(s, "inbound|") {
			return routeName{port: parseName(s).port}
		}
		return routeName{port: number(s)}
	}
	parts := strings.Split(s, ".")
	switch {
	case parts[0] == "http" && len(parts) >= 2:
		return routeName{port: number(parts[1])}
	case parts[0] == "https" && len(parts) >= 5:
		return routeName{port: number(parts[1]), portName: parts[2], gateway: parts[4] + "/" + parts[3]}
	}
	return routeName{}
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}
