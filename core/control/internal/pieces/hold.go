package pieces

import (
	"github.com/coxswain-mesh/coxswain/core/view"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Holdable reports whether a piece of a resource may be held back from clients that have not
// refused it, which get what most clients had of it (before), or do without. A filter may be that
// is on the list, a virtual host, filter chain or cluster where what decides who may do what, and
// how much, is in both as it is in the other: TLS, authentication, authorization, rate limits, and
// filters that nobody has classified. A whole listener or route configuration never is, nor are
// resources of other types.
func (b Book) Holdable(now, before *view.Body, p Piece) bool {
	if before == nil || !before.Exists() {
		return false
	}
	if b.typeURL == Cluster {
		var n, o clusterv3.Cluster
		return p == Whole && proto.Unmarshal(now.Value(), &n) == nil && proto.Unmarshal(before.Value(), &o) == nil && same(guarded(&n), guarded(&o))
	}
	n := b.open(now)
	if n == nil || b.open(before) == nil {
		return false
	}
	switch {
	case p.Host != "":
		was := b.pair(before, now).host(p.Host)
		return n.hosts[p.Host] != nil && (was == nil || same(guardedHost(n.hosts[p.Host]), guardedHost(was)))
	case p.Filter != "":
		return holdsFilter(n.chains[p.Chain], b.pair(before, now).chain(p.Chain), p.Filter)
	case p.Chain != "":
		return holdsChain(n.chains[p.Chain], b.pair(before, now).chain(p.Chain))
	}
	return false
}

// holdsFilter reports whether a filter is on the list, where it stands now and where it stood.
func holdsFilter(now, before *chain, name string) bool {
	if now == nil || now.hcm == nil {
		return false
	}
	for i, f := range now.hcm.HttpFilters {
		if f.Name == name {
			return now.spared(i) && (before == nil || before.hcm == nil || before.filters[name] == nil || holdsFilter(before, nil, name))
		}
	}
	return false
}

// holdsChain reports whether two chains differ in nothing but what may be held: filters on the
// list, access logs, tracing, and the words of metrics. There is no closing a chain for clients
// that accept it, so that one which is new is not held.
func holdsChain(now, before *chain) bool {
	if now == nil || before == nil || now.hcm == nil || before.hcm == nil {
		return false
	}
	return same(bare(now), bare(before))
}

// bare is a chain without what may be held.
func bare(c *chain) proto.Message {
	m := proto.CloneOf(c.hcm)
	m.AccessLog, m.AccessLogOptions, m.Tracing, m.StatPrefix = nil, nil, nil, ""
	m.HttpFilters = nil
	for i, f := range c.hcm.HttpFilters {
		if !c.spared(i) {
			m.HttpFilters = append(m.HttpFilters, f)
		}
	}
	b := *c
	b.hcm = m
	out := b.with(m.HttpFilters)
	out.Metadata = nil
	return out
}

// guarded is what of a cluster decides: TLS, whom it takes for the server, and filters.
func guarded(c *clusterv3.Cluster) proto.Message {
	out := &clusterv3.Cluster{
		Name: c.Name, TransportSocket: c.TransportSocket, TransportSocketMatches: c.TransportSocketMatches, TransportSocketMatcher: c.TransportSocketMatcher,
		Filters: c.Filters, UpstreamBindConfig: c.UpstreamBindConfig, UpstreamConfig: c.UpstreamConfig,
		TypedExtensionProtocolOptions: c.TypedExtensionProtocolOptions,
	}
	if c.GetTransportSocketMatches() != nil { // endpoints are matched by their metadata
		out.LoadAssignment, out.Metadata = c.LoadAssignment, c.Metadata
	}
	return out
}

// guardedHost is what of a virtual host decides: TLS, rate limits, and what filters are told that
// are not on the list, wherever it stands. CORS is a browser's to enforce.
func guardedHost(h *routev3.VirtualHost) proto.Message {
	out := &routev3.VirtualHost{
		RequireTls: h.RequireTls, RateLimits: h.RateLimits, RequestHeadersToRemove: h.RequestHeadersToRemove,
		TypedPerFilterConfig: decidingConfig(h.TypedPerFilterConfig),
	}
	for _, r := range h.Routes {
		config := decidingConfig(r.TypedPerFilterConfig)
		a := r.GetRoute()
		for _, c := range a.GetWeightedClusters().GetClusters() {
			for name, v := range decidingConfig(c.TypedPerFilterConfig) {
				config[c.Name+" "+name] = v
			}
		}
		if len(config)+len(a.GetRateLimits())+len(r.RequestHeadersToRemove) == 0 {
			continue
		}
		limits := &routev3.RouteAction{RateLimits: a.GetRateLimits()}
		limits.IncludeVhRateLimits = a.GetIncludeVhRateLimits() //lint:ignore SA1019 Envoy heeds it still
		out.Routes = append(out.Routes, &routev3.Route{
			Match: r.Match, TypedPerFilterConfig: config, RequestHeadersToRemove: r.RequestHeadersToRemove, Action: &routev3.Route_Route{Route: limits},
		})
	}
	return out
}

// decidingConfig is what filters are told that are not on the list.
func decidingConfig(of map[string]*anypb.Any) map[string]*anypb.Any {
	out := map[string]*anypb.Any{}
	for name, v := range of {
		if !spareable[kind(v)] {
			out[name] = v
		}
	}
	return out
}

func same(a, b proto.Message) bool { return proto.Equal(a, b) }
