package rules

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// oldNames are names of filters that proxies don't have any more, with what they are called now.
// Source: Envoy, version history, 1.14 to 1.22.
var oldNames = map[string]string{
	"envoy.buffer":                  "envoy.filters.http.buffer",
	"envoy.cors":                    "envoy.filters.http.cors",
	"envoy.csrf":                    "envoy.filters.http.csrf",
	"envoy.ext_authz":               "envoy.filters.http.ext_authz",
	"envoy.fault":                   "envoy.filters.http.fault",
	"envoy.grpc_http1_bridge":       "envoy.filters.http.grpc_http1_bridge",
	"envoy.grpc_json_transcoder":    "envoy.filters.http.grpc_json_transcoder",
	"envoy.grpc_web":                "envoy.filters.http.grpc_web",
	"envoy.gzip":                    "envoy.filters.http.compressor",
	"envoy.health_check":            "envoy.filters.http.health_check",
	"envoy.http_connection_manager": connectionManager,
	"envoy.ip_tagging":              "envoy.filters.http.ip_tagging",
	"envoy.listener.tls_inspector":  "envoy.filters.listener.tls_inspector",
	"envoy.lua":                     "envoy.filters.http.lua",
	"envoy.mongo_proxy":             "envoy.filters.network.mongo_proxy",
	"envoy.rate_limit":              "envoy.filters.http.ratelimit",
	"envoy.redis_proxy":             "envoy.filters.network.redis_proxy",
	"envoy.router":                  "envoy.filters.http.router",
	"envoy.squash":                  "envoy.filters.http.squash",
	"envoy.tcp_proxy":               "envoy.filters.network.tcp_proxy",
}

// classes are the kinds of match, and what they can be applied to.
var (
	listenerClass = []networking.EnvoyFilter_ApplyTo{
		networking.EnvoyFilter_LISTENER, networking.EnvoyFilter_FILTER_CHAIN, networking.EnvoyFilter_NETWORK_FILTER,
		networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_LISTENER_FILTER,
	}
	routeClass = []networking.EnvoyFilter_ApplyTo{
		networking.EnvoyFilter_ROUTE_CONFIGURATION, networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE,
	}
)

func (c *checker) patchMatch(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch) {
	m := p.Match
	if m == nil {
		return
	}
	c.matchFits(at, p.ApplyTo, m)
	if m.GetListener() != nil {
		c.listenerMatch(at.field("listener"), p.ApplyTo, m.GetListener())
	}
	if w := m.GetWaypoint(); w != nil && w.PortNumber != 0 {
		c.port(at.field("waypoint").field("portNumber"), w.PortNumber)
	}
}

// matchFits checks that what is looked for is what the patch is applied to.
func (c *checker) matchFits(at path, to networking.EnvoyFilter_ApplyTo, m *networking.EnvoyFilter_EnvoyConfigObjectMatch) {
	waypoint := m.GetWaypoint() != nil
	if waypoint != (m.Context == networking.EnvoyFilter_WAYPOINT) && m.ObjectTypes != nil {
		c.fail(badPatchMatch, at, "Envoy filter: only support waypointMatch when context is WAYPOINT")
		return
	}
	if m.ObjectTypes == nil || waypoint {
		return
	}
	switch {
	case slices.Contains(listenerClass, to) && m.GetListener() == nil:
		c.fail(badPatchMatch, at, "Envoy filter: applyTo for listener class objects cannot have non listener match").hint("write match.listener")
	case slices.Contains(routeClass, to) && m.GetRouteConfiguration() == nil:
		c.fail(badPatchMatch, at,
			"Envoy filter: applyTo for http route class objects cannot have non route configuration match").hint("write match.routeConfiguration")
	case to == networking.EnvoyFilter_CLUSTER && m.GetCluster() == nil:
		c.fail(badPatchMatch, at, "Envoy filter: applyTo for cluster class objects cannot have non cluster match").hint("write match.cluster")
	}
}

func (c *checker) listenerMatch(at path, to networking.EnvoyFilter_ApplyTo, l *networking.EnvoyFilter_ListenerMatch) {
	f := l.GetFilterChain().GetFilter()
	if f == nil {
		return
	}
	here := at.field("filterChain").field("filter")
	c.filterName(here.field("name"), f.Name)
	if f.Name == "" {
		c.fail(badPatchMatch, here.field("name"), "Envoy filter: filter match has no name to match on")
		return
	}
	sub := f.SubFilter
	if sub == nil {
		return
	}
	here = here.field("subFilter")
	c.filterName(here.field("name"), sub.Name)
	switch {
	case to != networking.EnvoyFilter_HTTP_FILTER:
		c.fail(badPatchMatch, here, "Envoy filter: subfilter match can be used with applyTo HTTP_FILTER only")
	case f.Name != connectionManager && oldNames[f.Name] != connectionManager:
		c.fail(badPatchMatch, here, "Envoy filter: subfilter match requires filter match with %s", connectionManager)
	case sub.Name == "":
		c.fail(badPatchMatch, here.field("name"), "Envoy filter: subfilter match has no name to match on")
	}
}

func (c *checker) filterName(at path, name string) {
	if now, old := oldNames[name]; old {
		c.warn(oldFilterName, at, "using deprecated filter name %s", quote(name)).hint("it is called %s now", now)
	}
}
