package grpc

import (
	"net"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	faultFilter  = "envoy.filters.http.fault"
	routerFilter = "envoy.filters.http.router"
)

// client is the listener of a client's target (A27): an API listener that leads to the routes of a
// service's port.
func client(name string, routes subset) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: name,
		ApiListener: &listenerv3.ApiListener{ApiListener: pack(&hcm.HttpConnectionManager{
			StatPrefix:     routes.String(),
			RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{ConfigSource: aggregated(), RouteConfigName: routes.String()}},
			HttpFilters:    []*hcm.HttpFilter{filter(faultFilter, &faultv3.HTTPFault{}), filter(routerFilter, &routerv3.Router{})},
		})},
	}
}

// nobody is the listener of a target that doesn't exist. It leads to a cluster without endpoints:
// calls fail at once, as UNAVAILABLE in each language; without a route grpc-java says INTERNAL.
// Without an answer a client waits 15 seconds for one: that a name isn't in an answer it may have
// had before it asked says nothing to it. nil for names that are no targets.
func nobody(name string) proto.Message {
	if name == "" || strings.ContainsAny(name, "/|") {
		return nil
	}
	return &listenerv3.Listener{
		Name: name,
		ApiListener: &listenerv3.ApiListener{ApiListener: pack(&hcm.HttpConnectionManager{
			StatPrefix: "nobody",
			RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
				Name: "nobody", VirtualHosts: []*routev3.VirtualHost{{Name: "nobody", Domains: []string{"*"}, Routes: []*routev3.Route{{
					Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
					Action: &routev3.Route_Route{Route: &routev3.RouteAction{
						ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: stranger(name).String()},
					}},
				}}}},
			}},
			HttpFilters: []*hcm.HttpFilter{filter(routerFilter, &routerv3.Router{})},
		})},
	}
}

// stranger names the cluster of a target that doesn't exist.
func stranger(target string) subset {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return subset{host: target}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return subset{host: target}
	}
	return subset{port: uint32(n), host: host}
}

func filter(name string, config proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(config)}}
}

// aggregated: by the stream that this came on.
func aggregated() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// pack encodes a message. It can't fail: ours have valid text and nothing that is required.
func pack(m proto.Message) *anypb.Any {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: body}
}
