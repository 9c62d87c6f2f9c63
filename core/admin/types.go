package admin

import "strings"

const prefix = "type.googleapis.com/"

// short resolves the short names of types, in any case.
func short(name string) string {
	switch strings.ToLower(name) {
	case "cds":
		return "envoy.config.cluster.v3.Cluster"
	case "eds":
		return "envoy.config.endpoint.v3.ClusterLoadAssignment"
	case "lds":
		return "envoy.config.listener.v3.Listener"
	case "rds":
		return "envoy.config.route.v3.RouteConfiguration"
	case "sds":
		return "envoy.extensions.transport_sockets.tls.v3.Secret"
	case "ecds":
		return "envoy.config.core.v3.TypedExtensionConfig"
	}
	return name
}

// TypeURL reads a type URL, a message's full name, or a short name such as cds.
func TypeURL(name string) string { return typeURL(name) }

// typeURL reads a type URL, a message's full name, or a short name such as cds.
func typeURL(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return prefix + short(name)
}
