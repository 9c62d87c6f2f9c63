package encode

import "google.golang.org/protobuf/reflect/protoreflect"

// URL is that of a type.
func URL(name protoreflect.FullName) string { return typePrefix + string(name) }

// Type URLs of the resources that this generator makes.
const (
	ClusterType  = typePrefix + "envoy.config.cluster.v3.Cluster"
	EndpointType = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType = typePrefix + "envoy.config.listener.v3.Listener"
	// ExtensionType is the configuration of a filter.
	ExtensionType = typePrefix + "envoy.config.core.v3.TypedExtensionConfig"
	RouteType     = typePrefix + "envoy.config.route.v3.RouteConfiguration"
	// NameTableType is Istio's table of names for an agent that answers DNS queries.
	NameTableType = typePrefix + "istio.networking.nds.v1.NameTable"
)
