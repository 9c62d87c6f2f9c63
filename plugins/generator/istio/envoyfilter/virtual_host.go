package envoyfilter

import (
	"slices"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

type (
	hostMatch   = networking.EnvoyFilter_RouteConfigurationMatch_VirtualHostMatch
	routeMatch  = networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch
	routeAction = networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_Action
)

// hosts patches the virtual hosts: first those that there are, then which there are. A name that is
// removed is gone, even if it is added.
func (r *routePatcher) hosts() {
	patches := r.patches(networking.EnvoyFilter_VIRTUAL_HOST)
	var removed []string
	for i, h := range r.routes.VirtualHosts {
		patched, kept := r.host(h, patches)
		if !kept {
			removed = append(removed, patched.Name)
		}
		r.routes.VirtualHosts[i] = patched
	}
	for _, p := range patches {
		if p.op == networking.EnvoyFilter_Patch_ADD {
			r.routes.VirtualHosts = append(r.routes.VirtualHosts, copyOf[*route.VirtualHost](p))
		}
	}
	r.routes.VirtualHosts = slices.DeleteFunc(r.routes.VirtualHosts, func(h *route.VirtualHost) bool { return slices.Contains(removed, h.Name) })
}

// host patches a virtual host and its routes, or returns another in its place; false if it is
// removed.
func (r *routePatcher) host(h *route.VirtualHost, patches []*Patch) (*route.VirtualHost, bool) {
	for _, p := range patches {
		if !matchesHost(p.match.GetRouteConfiguration().GetVhost(), h) {
			continue
		}
		switch {
		case p.op == networking.EnvoyFilter_Patch_REMOVE:
			return h, false
		case p.op == networking.EnvoyFilter_Patch_REPLACE:
			h = copyOf[*route.VirtualHost](p)
		case p.merges():
			p.mergeInto(h)
		}
	}
	r.httpRoutes(h)
	return h, true
}

func matchesHost(m *hostMatch, h *route.VirtualHost) bool {
	return m == nil || (m.Name == "" || m.Name == h.Name) && (m.DomainName == "" || slices.Contains(h.Domains, m.DomainName))
}

// httpRoutes patches the routes of a virtual host: first those that there are, then which there
// are.
func (r *routePatcher) httpRoutes(h *route.VirtualHost) {
	var list []*Patch
	for _, p := range r.patches(networking.EnvoyFilter_HTTP_ROUTE) {
		if matchesHost(p.match.GetRouteConfiguration().GetVhost(), h) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return
	}
	h.Routes = slices.DeleteFunc(h.Routes, func(x *route.Route) bool { return !patchRoute(x, list) })
	for _, p := range list {
		m := p.match.GetRouteConfiguration().GetVhost().GetRoute()
		switch p.op {
		case networking.EnvoyFilter_Patch_REMOVE, networking.EnvoyFilter_Patch_REPLACE:
			continue
		case networking.EnvoyFilter_Patch_INSERT_FIRST: // routes come first only where there is the one that the patch names
			if m != nil && !slices.ContainsFunc(h.Routes, func(x *route.Route) bool { return matchesRoute(m, x) }) {
				continue
			}
		}
		e := elements[*route.Route]{h.Routes, m != nil, func(x *route.Route) bool { return matchesRoute(m, x) }}
		h.Routes = e.edit(p.op, func() *route.Route { return copyOf[*route.Route](p) })
	}
}

// patchRoute merges into a route; false if it is removed.
func patchRoute(x *route.Route, list []*Patch) bool {
	for _, p := range list {
		if !matchesRoute(p.match.GetRouteConfiguration().GetVhost().GetRoute(), x) {
			continue
		}
		if p.op == networking.EnvoyFilter_Patch_REMOVE {
			return false
		}
		if p.merges() {
			p.mergeInto(x)
		}
	}
	return true
}

func matchesRoute(m *routeMatch, x *route.Route) bool {
	if m == nil {
		return true
	}
	if m.Name != "" && m.Name != x.Name {
		return false
	}
	return m.Action == networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_ANY || m.Action == actionOf(x, m.Action)
}

// actionOf is what a route does; what patches have no word for is whatever they ask for.
func actionOf(x *route.Route, otherwise routeAction) routeAction {
	switch x.Action.(type) {
	case *route.Route_Route:
		return networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_ROUTE
	case *route.Route_Redirect:
		return networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_REDIRECT
	case *route.Route_DirectResponse:
		return networking.EnvoyFilter_RouteConfigurationMatch_RouteMatch_DIRECT_RESPONSE
	}
	return otherwise
}
