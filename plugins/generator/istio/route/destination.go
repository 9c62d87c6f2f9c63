package route

import (
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
)

// forward sends a route's requests to its destinations.
func (b *builder) forward(out *routev3.Route, authority string) {
	action := NewAction(b.in.Timeout)
	out.Action = &routev3.Route_Route{Route: action}
	if b.service.Route {
		action.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
	}
	b.rewrite(out.Match, action, authority)
	b.mirror(action)
	action.AppendXForwardedHost = b.ForwardedHost
	list := b.destinations()
	for _, d := range list {
		action.HashPolicy = append(action.HashPolicy, hashPolicy(b.hash(d.Destination))...)
	}
	alone := len(b.in.Route) == 1
	action.RetryPolicy = retryPolicy(b.in.Retries, b.Retries, alone && b.hash(list[0].Destination) != nil)
	if alone {
		b.single(out, action, list[0])
		return
	}
	weighted := &routev3.WeightedCluster{}
	for _, d := range list {
		weighted.Clusters = append(weighted.Clusters, b.weighted(d))
	}
	action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
}

// destinations are those that get anything.
func (b *builder) destinations() []*networking.HTTPRouteDestination {
	if len(b.in.Route) == 1 {
		return b.in.Route
	}
	var out []*networking.HTTPRouteDestination
	for _, d := range b.in.Route {
		if d.Weight > 0 {
			out = append(out, d)
		}
	}
	return out
}

func (b *builder) single(out *routev3.Route, action *routev3.RouteAction, d *networking.HTTPRouteDestination) {
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: b.cluster(d.Destination).String()}
	ops := operationsOf(d.Headers)
	ops.apply(out)
	if ops.authority != "" && action.HostRewriteSpecifier == nil { // what is said of the whole route comes first
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
	}
}

func (b *builder) weighted(d *networking.HTTPRouteDestination) *routev3.WeightedCluster_ClusterWeight {
	ops := operationsOf(d.Headers)
	out := &routev3.WeightedCluster_ClusterWeight{
		Name:                    b.cluster(d.Destination).String(),
		Weight:                  wrapperspb.UInt32(uint32(d.Weight)),
		RequestHeadersToAdd:     ops.requestAdd,
		RequestHeadersToRemove:  ops.requestRemove,
		ResponseHeadersToAdd:    ops.responseAdd,
		ResponseHeadersToRemove: ops.responseRemove,
	}
	if ops.authority != "" {
		out.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: ops.authority}
	}
	return out
}

func (b *builder) cluster(d *networking.Destination) cluster.Name {
	port := d.GetPort().GetNumber()
	if port == 0 {
		port = b.PortOf(d.GetHost())
	}
	return cluster.Name{Port: port, Subset: d.GetSubset(), Host: d.GetHost()}
}

// NewAction makes a forwarding action with a timeout; without one requests may take as long as they
// do.
func NewAction(timeout *durationpb.Duration) *routev3.RouteAction {
	if timeout == nil {
		timeout = durationpb.New(0)
	}
	return &routev3.RouteAction{
		Timeout:        timeout,
		MaxGrpcTimeout: timeout, // what Istio sends; Envoy knows no other way to leave gRPC's own timeout alone here
	}
}

// rewrite changes host and path. Where a route of the Gateway API takes a prefix away, no slash is
// left twice.
func (b *builder) rewrite(match *routev3.RouteMatch, action *routev3.RouteAction, authority string) {
	r := b.in.Rewrite
	if r.GetAuthority() != "" {
		authority = r.Authority
	}
	if authority != "" {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
	if x := r.GetUriRegexRewrite(); x != nil {
		action.RegexRewrite = &matcher.RegexMatchAndSubstitute{
			Pattern:      &matcher.RegexMatcher{Regex: x.Match},
			Substitution: x.Rewrite,
		}
		return
	}
	action.PrefixRewrite, action.RegexRewrite = b.prefix(match, r.GetUri())
}

// prefix is how the prefix of a match is replaced. To a route of the Gateway API a prefix is
// elements of a path, between slashes: none is left twice where the prefix is taken away, and none
// is missing where it was the root's.
func (b *builder) prefix(match *routev3.RouteMatch, by string) (string, *matcher.RegexMatchAndSubstitute) {
	switch {
	case !b.service.Route:
	case by == "/":
		return "", &matcher.RegexMatchAndSubstitute{
			Pattern:      &matcher.RegexMatcher{Regex: "^" + regexp.QuoteMeta(match.GetPathSeparatedPrefix()) + "(/?)(.*)"},
			Substitution: `/\2`,
		}
	case by != "" && match.GetPrefix() == "/":
		return strings.TrimSuffix(by, "/") + "/", nil
	}
	return by, nil
}
