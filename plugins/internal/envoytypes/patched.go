package envoytypes

import (
	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Patched returns an empty message of what an EnvoyFilter's patch is applied to; nil where it is
// none of Envoy's.
func Patched(to networking.EnvoyFilter_ApplyTo) proto.Message {
	switch to {
	case networking.EnvoyFilter_LISTENER:
		return &listener.Listener{}
	case networking.EnvoyFilter_FILTER_CHAIN:
		return &listener.FilterChain{}
	case networking.EnvoyFilter_LISTENER_FILTER:
		return &listener.ListenerFilter{}
	case networking.EnvoyFilter_NETWORK_FILTER:
		return &listener.Filter{}
	case networking.EnvoyFilter_HTTP_FILTER:
		return &hcm.HttpFilter{}
	case networking.EnvoyFilter_ROUTE_CONFIGURATION:
		return &route.RouteConfiguration{}
	case networking.EnvoyFilter_VIRTUAL_HOST:
		return &route.VirtualHost{}
	case networking.EnvoyFilter_HTTP_ROUTE:
		return &route.Route{}
	case networking.EnvoyFilter_CLUSTER:
		return &cluster.Cluster{}
	case networking.EnvoyFilter_EXTENSION_CONFIG:
		return &core.TypedExtensionConfig{}
	case networking.EnvoyFilter_BOOTSTRAP:
		return &bootstrap.Bootstrap{}
	}
	return nil
}
