package xds

import (
	clusters "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoints "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	extensions "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	listeners "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routes "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtimes "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secrets "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
)

// The types of the services that serve one type.
const (
	typeEndpoints   = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeLocality    = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint"
	typeListeners   = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeRoutes      = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	typeScoped      = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	typeVirtualHost = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	typeSecrets     = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	typeExtensions  = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	typeRuntimes    = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
)

// register adds the aggregated service and those of one type. Fetch, a single question without a
// stream, is answered Unimplemented.
func (e *endpoint) register(g *grpc.Server) {
	for _, s := range []struct {
		desc    grpc.ServiceDesc
		typeURL string
	}{
		{discovery.AggregatedDiscoveryService_ServiceDesc, ""},
		{clusters.ClusterDiscoveryService_ServiceDesc, ClusterType},
		{endpoints.EndpointDiscoveryService_ServiceDesc, typeEndpoints},
		{endpoints.LocalityEndpointDiscoveryService_ServiceDesc, typeLocality},
		{listeners.ListenerDiscoveryService_ServiceDesc, typeListeners},
		{routes.RouteDiscoveryService_ServiceDesc, typeRoutes},
		{routes.ScopedRoutesDiscoveryService_ServiceDesc, typeScoped},
		{routes.VirtualHostDiscoveryService_ServiceDesc, typeVirtualHost},
		{secrets.SecretDiscoveryService_ServiceDesc, typeSecrets},
		{extensions.ExtensionConfigDiscoveryService_ServiceDesc, typeExtensions},
		{runtimes.RuntimeDiscoveryService_ServiceDesc, typeRuntimes},
	} {
		g.RegisterService(e.describe(s.desc, s.typeURL), nil)
	}
}

// describe returns a service's description with our handlers: all streams are one, but for the
// protocol and the type that they default to. A generated description has one stream named Delta…
// and, except where only that is defined, another.
func (e *endpoint) describe(d grpc.ServiceDesc, typeURL string) *grpc.ServiceDesc {
	out := grpc.ServiceDesc{ServiceName: d.ServiceName, Metadata: d.Metadata}
	for _, s := range d.Streams {
		delta := len(s.StreamName) > 5 && s.StreamName[:5] == "Delta"
		out.Streams = append(out.Streams, grpc.StreamDesc{
			StreamName: s.StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, g grpc.ServerStream) error { return e.handle(g, delta, typeURL) },
		})
	}
	return &out
}
