package route

import (
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

func cors(in *networking.CorsPolicy) *corsv3.CorsPolicy {
	out := &corsv3.CorsPolicy{
		AllowMethods:     strings.Join(in.AllowMethods, ","),
		AllowHeaders:     strings.Join(in.AllowHeaders, ","),
		ExposeHeaders:    strings.Join(in.ExposeHeaders, ","),
		AllowCredentials: in.AllowCredentials,
		FilterEnabled:    &core.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}},
	}
	for _, o := range in.AllowOrigins {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, text(o))
	}
	if len(in.AllowOrigins) == 0 {
		for _, o := range in.AllowOrigin { // still served
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch,
				&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: o}})
		}
	}
	if in.MaxAge != nil {
		out.MaxAge = strconv.FormatInt(in.MaxAge.GetSeconds(), 10)
	}
	forward := in.UnmatchedPreflights != networking.CorsPolicy_IGNORE
	out.ForwardNotMatchingPreflights = wrapperspb.Bool(forward)
	return out
}

// perFilter configures HTTP filters for the route alone.
func (b *builder) perFilter(out *routev3.Route) {
	set := func(name string, m *anypb.Any) {
		if out.TypedPerFilterConfig == nil {
			out.TypedPerFilterConfig = map[string]*anypb.Any{}
		}
		out.TypedPerFilterConfig[name] = m
	}
	if b.in.Fault != nil {
		set("envoy.filters.http.fault", encode.Any(fault(b.in.Fault)))
	}
	if b.in.CorsPolicy != nil {
		set("envoy.filters.http.cors", encode.Any(cors(b.in.CorsPolicy)))
	}
}
