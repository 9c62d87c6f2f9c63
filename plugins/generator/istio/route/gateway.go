package route

import (
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Server is one server of a Gateway, with the virtual services that name that Gateway, the oldest first.
type Server struct {
	Hosts         []string
	Namespace     string
	HTTPSRedirect bool
	Services      []*config.VirtualService
}

// GatewayHosts makes the virtual hosts of one port of a gateway. Several virtual services may add routes to one host; what takes every
// request goes last.
func GatewayHosts(port uint32, servers []Server, routes func(*config.VirtualService) []*routev3.Route) []*routev3.VirtualHost {
	hosts := map[string]*routev3.VirtualHost{}
	host := func(name string, redirect bool) *routev3.VirtualHost {
		h := hosts[name]
		if h == nil {
			h = VirtualHost(HostName(name, port), []string{name}, nil)
			hosts[name] = h
		}
		if redirect {
			h.RequireTls = routev3.VirtualHost_ALL
		}
		return h
	}
	for _, s := range servers {
		for _, v := range s.Services {
			for _, name := range s.hostsOf(v) {
				h := host(name, s.HTTPSRedirect)
				h.Routes = append(h.Routes, routes(v)...)
			}
		}
		if s.HTTPSRedirect {
			for _, h := range s.Hosts {
				host(bareHost(h), true)
			}
		}
	}
	if len(hosts) == 0 {
		return []*routev3.VirtualHost{Unknown(port)}
	}
	out := make([]*routev3.VirtualHost, 0, len(hosts))
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		h.Routes = takesAllLast(h.Routes)
		out = append(out, h)
	}
	return out
}

// hostsOf are the hosts that both the server and the virtual service have.
func (s *Server) hostsOf(v *config.VirtualService) []string {
	var out []string
	for _, h := range s.Hosts {
		namespace, name, ok := strings.Cut(h, "/")
		if !ok {
			namespace, name = "*", h
		}
		if namespace == "." {
			namespace = s.Namespace
		}
		if namespace != "*" && namespace != v.Namespace {
			continue
		}
		for _, vh := range v.Spec.Hosts {
			if config.Overlaps(name, vh) {
				out = append(out, config.Narrower(name, vh))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func bareHost(h string) string {
	if _, name, ok := strings.Cut(h, "/"); ok {
		return name
	}
	return h
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
