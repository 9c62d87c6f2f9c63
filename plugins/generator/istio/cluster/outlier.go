package cluster

import (
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/config/common/matcher/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// outliers says when an endpoint is left out for a while. Only what was asked for is enforced:
// never success rates.
func (in *Outbound) outliers(c *clusterv3.Cluster) {
	o := in.Policy.GetOutlierDetection()
	if o == nil {
		return
	}
	out := &clusterv3.OutlierDetection{
		Interval:             o.Interval,
		BaseEjectionTime:     o.BaseEjectionTime,
		EnforcingSuccessRate: wrapperspb.UInt32(0),
	}
	out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = enforced(o.Consecutive_5XxErrors)
	out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = enforced(o.ConsecutiveGatewayErrors)
	if o.MaxEjectionPercent > 0 {
		out.MaxEjectionPercent = wrapperspb.UInt32(uint32(o.MaxEjectionPercent))
	}
	if o.SplitExternalLocalOriginErrors {
		out.SplitExternalLocalOriginErrors = true
		if o.ConsecutiveLocalOriginFailures.GetValue() > 0 {
			out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = enforced(o.ConsecutiveLocalOriginFailures)
		}
		out.EnforcingLocalOriginSuccessRate = wrapperspb.UInt32(0)
	}
	c.OutlierDetection = out
	switch {
	case o.MinHealthPercent < 0:
	case prefers(in.Service):
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{} // it has endpoints that aren't ready
	default:
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: float64(o.MinHealthPercent)}
	}
}

// Unhealthy reports whether clients know of endpoints that aren't ready: unless a rule lets them
// send to all where few are.
func Unhealthy(policy *networking.TrafficPolicy, s *config.Service) bool {
	return prefers(s) || policy.GetOutlierDetection().GetMinHealthPercent() <= 0
}

// errorsOf are the answers that are errors by their status, where a rule says which; nil where none
// does.
func errorsOf(o *networking.OutlierDetection) *http.HttpProtocolOptions_OutlierDetection {
	var rules []*matcher.MatchPredicate
	for _, code := range o.GetOutlierDetectionHttpErrorCodes() {
		rules = append(rules, statusIs(code))
	}
	switch len(rules) {
	case 0:
		return nil
	case 1:
		return &http.HttpProtocolOptions_OutlierDetection{ErrorMatcher: rules[0]}
	}
	return &http.HttpProtocolOptions_OutlierDetection{ErrorMatcher: &matcher.MatchPredicate{
		Rule: &matcher.MatchPredicate_OrMatch{OrMatch: &matcher.MatchPredicate_MatchSet{Rules: rules}},
	}}
}

func statusIs(code uint32) *matcher.MatchPredicate {
	is := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: strconv.FormatUint(uint64(code), 10)}}
	header := &routev3.HeaderMatcher{Name: ":status", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: is}}
	return &matcher.MatchPredicate{Rule: &matcher.MatchPredicate_HttpResponseHeadersMatch{
		HttpResponseHeadersMatch: &matcher.HttpHeadersMatch{Headers: []*routev3.HeaderMatcher{header}},
	}}
}

func enforced(n *wrapperspb.UInt32Value) (limit, share *wrapperspb.UInt32Value) {
	if n == nil {
		return nil, nil
	}
	if n.Value > 0 {
		return wrapperspb.UInt32(n.Value), wrapperspb.UInt32(100)
	}
	return wrapperspb.UInt32(0), wrapperspb.UInt32(0)
}
