package route

import (
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Server is one server of a Gateway, with the virtual services that name that Gateway, the oldest
// first.
type Server struct {
	// Gateway is the Gateway's key, Port the port that the server names.
	Gateway string
	Port    uint32
	Hosts   []string
	// HostsFor are the hosts that virtual services of a namespace may have.
	HostsFor      func(namespace string) []string
	HTTPSRedirect bool
	// TLS: it has settings for TLS.
	TLS      bool
	Services []*config.VirtualService
	// Filters are settings of filters for a virtual host of these hosts; it may be nil.
	Filters func(hosts []string) map[string]*anypb.Any
	// Refused are claims that don't count (see Undecided); it may be nil.
	Refused map[Claim]bool
}

// GatewayHosts makes the virtual hosts of servers that share a route configuration. Several virtual
// services may add routes to one host; what takes every request goes last. Hosts that have the same
// routes are one virtual host.
func GatewayHosts(servers []Server, routes func(*config.VirtualService, Server) []*routev3.Route) []*routev3.VirtualHost {
	hosts := gatewayHosts{}
	for _, s := range servers {
		for _, v := range s.Services {
			names := s.hostsOf(v)
			if len(names) == 0 {
				continue
			}
			list := routes(v, s)
			if len(list) == 0 {
				continue // it is for connections, or for others
			}
			for _, name := range names {
				if s.Refused[Claim{name, v.Key}] {
					continue
				}
				if hosts[name] == nil {
					hosts.get(name, s).TypedPerFilterConfig = s.filters(names)
				}
				h := hosts.get(name, s)
				h.Routes = append(h.Routes, list...)
			}
		}
		if s.HTTPSRedirect {
			for _, name := range s.Hosts {
				hosts.get(strings.ToLower(name), s)
			}
		}
	}
	if len(hosts) == 0 {
		return []*routev3.VirtualHost{Unknown(servers[0].Port)}
	}
	return hosts.joined()
}

// gatewayHosts are virtual hosts by their domain.
type gatewayHosts map[string]*routev3.VirtualHost

func (g gatewayHosts) get(name string, s Server) *routev3.VirtualHost {
	h := g[name]
	if h == nil {
		h = VirtualHost(HostName(name, s.Port), []string{name}, nil)
		g[name] = h
	}
	if s.HTTPSRedirect {
		h.RequireTls = routev3.VirtualHost_ALL
	}
	return h
}

// joined makes one of virtual hosts with the same routes, under the most specific name, and puts
// all in order.
func (g gatewayHosts) joined() []*routev3.VirtualHost {
	var out []*routev3.VirtualHost
	for _, name := range slices.SortedFunc(maps.Keys(g), istio.MoreSpecific) {
		h := g[name]
		i := slices.IndexFunc(out, func(o *routev3.VirtualHost) bool {
			return o.RequireTls == h.RequireTls && slices.Equal(o.Routes, h.Routes) && sameFilters(o.TypedPerFilterConfig, h.TypedPerFilterConfig)
		})
		if i < 0 {
			out = append(out, h)
		} else {
			out[i].Domains = append(out[i].Domains, h.Domains...)
		}
	}
	for _, h := range out {
		h.Routes = takesAllLast(h.Routes)
	}
	slices.SortFunc(out, func(a, b *routev3.VirtualHost) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s *Server) filters(hosts []string) map[string]*anypb.Any {
	if s.Filters == nil {
		return nil
	}
	return s.Filters(hosts)
}

func sameFilters(a, b map[string]*anypb.Any) bool {
	return maps.EqualFunc(a, b, func(x, y *anypb.Any) bool { return proto.Equal(x, y) })
}

// hostsOf are the hosts that both the server and the virtual service have, in lower case.
func (s *Server) hostsOf(v *config.VirtualService) []string {
	var out []string
	for _, name := range s.HostsFor(v.Namespace) {
		for _, vh := range v.Spec.Hosts {
			if istio.Overlaps(name, vh) {
				out = append(out, strings.ToLower(istio.Narrower(name, vh)))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func takesAllLast(routes []*routev3.Route) []*routev3.Route {
	out := make([]*routev3.Route, 0, len(routes))
	var last []*routev3.Route
	for _, r := range routes {
		if TakesAll(r) {
			last = append(last, r)
		} else {
			out = append(out, r)
		}
	}
	return append(out, last...)
}
