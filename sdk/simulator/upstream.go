package simulator

import (
	"net/http"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"google.golang.org/protobuf/types/known/structpb"
)

// upstream sends the request to the route's clusters.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-routeaction
func (w *walk) upstream(a *routev3.RouteAction) {
	shares, ok := w.shares(a)
	if !ok {
		w.end(Unknown, "an extension chooses the cluster")
		return
	}
	w.out.Upstream = Upstream{Clusters: shares, Timeout: 15 * time.Second}
	w.mirrors(a)
	w.patience(a)
	for _, s := range shares {
		w.step("cluster", s.Cluster, "%g %% of requests, to %d endpoints", s.Percent, len(s.Endpoints))
	}
	good := 0
	for _, s := range shares {
		if s.Fault == "" {
			good++
		} else if len(shares) > 1 {
			w.out.Chances = append(w.out.Chances, Chance{s.Percent, http.StatusServiceUnavailable, s.Cluster + ": " + s.Fault})
		}
	}
	if good > 0 {
		w.sticky(a)
		w.end(Forwarded, "by route %s", w.out.Way.Route)
		return
	}
	w.faulty(a, shares)
}

// faulty answers because there is nobody to send the request to.
func (w *walk) faulty(a *routev3.RouteAction, shares []Share) {
	if len(shares) == 0 || shares[0].Fault == noCluster {
		status := http.StatusServiceUnavailable
		if a.ClusterNotFoundResponseCode == routev3.RouteAction_NOT_FOUND {
			status = http.StatusNotFound
		}
		w.answer(status, "", "cluster_not_found", "the route's cluster isn't there")
		return
	}
	w.answer(http.StatusServiceUnavailable, "no healthy upstream", "no_healthy_upstream", "%s: %s", shares[0].Cluster, shares[0].Fault)
}

// shares are the clusters that a route names, each with the request that it gets.
func (w *walk) shares(a *routev3.RouteAction) (shares []Share, ok bool) {
	switch spec := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		return []Share{w.sent(spec.Cluster, 100, a, nil)}, true
	case *routev3.RouteAction_ClusterHeader:
		name, _ := w.stream.header(spec.ClusterHeader)
		return []Share{w.sent(name, 100, a, nil)}, true
	case *routev3.RouteAction_WeightedClusters:
		total := uint32(0)
		for _, c := range spec.WeightedClusters.Clusters {
			total += c.GetWeight().GetValue()
		}
		for _, c := range spec.WeightedClusters.Clusters {
			name := c.Name
			if c.ClusterHeader != "" {
				name, _ = w.stream.header(c.ClusterHeader)
			}
			if n := c.GetWeight().GetValue(); n > 0 {
				shares = append(shares, w.sent(name, percent(n, total), a, c))
			}
		}
		return shares, true
	}
	return nil, false
}

// sent is a cluster with the request as it gets it.
func (w *walk) sent(cluster string, percent float64, a *routev3.RouteAction, c *routev3.WeightedCluster_ClusterWeight) Share {
	s := w.share(cluster, percent, merged(a.MetadataMatch, c.GetMetadataMatch()))
	r := w.stream.Request
	r.Header = r.Header.Clone()
	for _, m := range w.stream.mutations(c) {
		m.request(r.Header, w.stream)
	}
	r.Path = w.stream.rewrittenPath(a)
	r.Host = w.stream.rewrittenHost(a, c, s)
	if a.AppendXForwardedHost && r.Host != w.stream.Host {
		r.Header.Add("X-Forwarded-Host", w.stream.Host)
	}
	s.Request = &r
	w.answered(c)
	return s
}

func (s *stream) rewrittenPath(a *routev3.RouteAction) string {
	plain := s.plainPath()
	rest := s.Path[len(plain):]
	switch {
	case a.PrefixRewrite != "":
		return rewritePrefix(plain, s.route.GetMatch(), a.PrefixRewrite) + rest
	case a.RegexRewrite != nil:
		return rewriteRegex(plain, a.RegexRewrite) + rest
	}
	return s.Path
}

func (s *stream) rewrittenHost(a *routev3.RouteAction, c *routev3.WeightedCluster_ClusterWeight, to Share) string {
	if name := c.GetHostRewriteLiteral(); name != "" {
		return name
	}
	switch spec := a.GetHostRewriteSpecifier().(type) {
	case *routev3.RouteAction_HostRewriteLiteral:
		return spec.HostRewriteLiteral
	case *routev3.RouteAction_HostRewriteHeader:
		if name, ok := s.header(spec.HostRewriteHeader); ok {
			return name
		}
	case *routev3.RouteAction_HostRewritePathRegex:
		return rewriteRegex(s.plainPath(), spec.HostRewritePathRegex)
	case *routev3.RouteAction_AutoHostRewrite:
		if spec.AutoHostRewrite.GetValue() && len(to.Endpoints) > 0 {
			name, _ := hostPort(to.Endpoints[0].Address)
			return name
		}
	}
	return s.Host
}

func (w *walk) mirrors(a *routev3.RouteAction) {
	policies := a.RequestMirrorPolicies
	for _, less := range [][]*routev3.RouteAction_RequestMirrorPolicy{w.stream.host.GetRequestMirrorPolicies(), w.stream.routes.GetRequestMirrorPolicies()} {
		if len(policies) == 0 {
			policies = less
		}
	}
	for _, m := range policies {
		p := 100.0
		if m.RuntimeFraction != nil {
			p = fraction(m.RuntimeFraction.DefaultValue)
		}
		if p > 0 {
			w.out.Upstream.Mirrors = append(w.out.Upstream.Mirrors, w.sent(m.Cluster, p, a, nil))
		}
	}
}

// patience is how long, and how often.
func (w *walk) patience(a *routev3.RouteAction) {
	u := &w.out.Upstream
	if a.Timeout != nil {
		u.Timeout = a.Timeout.AsDuration()
	}
	retry := a.RetryPolicy
	if retry == nil {
		retry = w.stream.host.GetRetryPolicy()
	}
	if retry != nil {
		u.RetryOn, u.Retries = retry.RetryOn, 1
		if retry.NumRetries != nil {
			u.Retries = int(retry.NumRetries.Value)
		}
	}
}

// sticky says what chooses the endpoint, where the cluster's balancer asks.
func (w *walk) sticky(a *routev3.RouteAction) {
	c := w.cluster(w.out.Upstream.Clusters[0].Cluster)
	if !hashes(c) {
		return
	}
	var by []string
	for _, p := range a.HashPolicy {
		switch spec := p.PolicySpecifier.(type) {
		case *routev3.RouteAction_HashPolicy_Header_:
			if _, ok := w.stream.header(spec.Header.HeaderName); ok {
				by = append(by, "header "+spec.Header.HeaderName)
			}
		case *routev3.RouteAction_HashPolicy_Cookie_:
			by = append(by, "cookie "+spec.Cookie.Name)
		case *routev3.RouteAction_HashPolicy_ConnectionProperties_:
			by = append(by, "source address")
		case *routev3.RouteAction_HashPolicy_QueryParameter_:
			if _, ok := w.stream.query()[spec.QueryParameter.Name]; ok {
				by = append(by, "parameter "+spec.QueryParameter.Name)
			}
		}
		if p.Terminal && len(by) > 0 {
			break
		}
	}
	w.out.Upstream.Sticky = strings.Join(by, ", ")
}

// merged: what the closer one says goes before.
func merged(a, b *corev3.Metadata) *corev3.Metadata {
	if b == nil {
		return a
	}
	out := &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
	for _, m := range []*corev3.Metadata{a, b} {
		for filter, s := range m.GetFilterMetadata() {
			if out.FilterMetadata[filter] == nil {
				out.FilterMetadata[filter] = &structpb.Struct{Fields: map[string]*structpb.Value{}}
			}
			for k, v := range s.GetFields() {
				out.FilterMetadata[filter].Fields[k] = v
			}
		}
	}
	return out
}
