package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Claim is a host that a virtual service, by its key, has routes for.
type Claim struct{ Host, Service string }

// mostCompared is how many pairs of routes of one host are compared. Beyond it, routes of virtual
// services of which nobody knows which was first count as competing.
const mostCompared = 1_000_000

// Undecided are the claims of virtual services to a host at servers that share a route
// configuration where some requests would be of both of two, and it is not known which of them was
// there first: none of them counts. Those whose routes are for other paths do not compete.
func Undecided(servers []Server, routes func(*config.VirtualService, Server) []*routev3.Route) (map[Claim]bool, []config.Contest) {
	type member struct {
		*config.VirtualService
		routes []*routev3.Route
	}
	hosts := map[string][]member{}
	for _, s := range servers {
		for _, v := range s.Services {
			if !v.Undated {
				continue
			}
			if names := s.hostsOf(v); len(names) > 0 {
				list := routes(v, s)
				for _, name := range names {
					if len(list) > 0 && !slices.ContainsFunc(hosts[name], func(m member) bool { return m.VirtualService == v }) {
						hosts[name] = append(hosts[name], member{v, list})
					}
				}
			}
		}
	}
	refused, contests := map[Claim]bool{}, map[config.Contest]bool{}
	for host, members := range hosts {
		compared := 0
		for i, a := range members {
			for _, b := range members[:i] {
				if !a.Ties(b.Meta) {
					continue
				}
				compared += len(a.routes) * len(b.routes)
				if compared > mostCompared || meet(a.routes, b.routes) {
					refused[Claim{host, a.Key}], refused[Claim{host, b.Key}] = true, true
					if len(contests) < mostContests {
						contests[config.Contest{
							Table: config.VirtualServices, A: min(a.Key, b.Key), B: max(a.Key, b.Key), Thing: fmt.Sprintf("requests for %s at a gateway", host),
						}] = true
					}
				}
			}
		}
	}
	return refused, slices.Collect(maps.Keys(contests))
}

// mostContests are told of one route configuration.
const mostContests = 100

// meet reports whether a request may be of a route of both lists.
func meet(a, b []*routev3.Route) bool {
	return slices.ContainsFunc(a, func(x *routev3.Route) bool {
		return slices.ContainsFunc(b, func(y *routev3.Route) bool { return mayMeet(x.Match, y.Match) })
	})
}

// mayMeet reports whether there may be a path that both matches take.
func mayMeet(a, b *routev3.RouteMatch) bool {
	x, exactX, ok := literal(a)
	y, exactY, also := literal(b)
	switch {
	case !ok || !also:
		return true
	case exactX && exactY:
		return x == y
	case exactX:
		return strings.HasPrefix(x, y)
	case exactY:
		return strings.HasPrefix(y, x)
	}
	return strings.HasPrefix(x, y) || strings.HasPrefix(y, x)
}

// literal is what paths of a match are or begin with, in lower case; false where it doesn't say.
func literal(m *routev3.RouteMatch) (text string, exact, ok bool) {
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return strings.ToLower(p.Prefix), false, true
	case *routev3.RouteMatch_PathSeparatedPrefix:
		return strings.ToLower(p.PathSeparatedPrefix), false, true
	case *routev3.RouteMatch_Path:
		return strings.ToLower(p.Path), true, true
	}
	return "", false, false
}
