package view

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

const envoyTypes = "type.googleapis.com/envoy."

// named are Envoy's types whose resources say their own name, each in field 1. It has to be the
// name under which they are served: clients go by the one or by the other, so that two names could
// stand for one resource. A VirtualHost is named by its route configuration too, and says only its
// half.
var named = map[string]bool{
	envoyTypes + "config.cluster.v3.Cluster":                  true,
	envoyTypes + "config.core.v3.TypedExtensionConfig":        true,
	envoyTypes + "config.endpoint.v3.ClusterLoadAssignment":   true,
	envoyTypes + "config.listener.v3.Listener":                true,
	envoyTypes + "config.route.v3.RouteConfiguration":         true,
	envoyTypes + "config.route.v3.ScopedRouteConfiguration":   true,
	envoyTypes + "extensions.transport_sockets.tls.v3.Secret": true,
	envoyTypes + "service.runtime.v3.Runtime":                 true,
}

// NameError is a resource that has another name than the one it is served under.
type NameError struct{ Name, Own string }

// Error implements error.
func (e *NameError) Error() string {
	return fmt.Sprintf("it is named %q but says of itself that it is %q; give it one name", e.Name, e.Own)
}

// CheckName reports whether a resource, which decodes, may have a name.
func CheckName(typeURL, name string, bytes []byte) error {
	return checkName(typeURL, name, value{bytes})
}

func checkName(typeURL, name string, v value) error {
	if !named[typeURL] {
		return nil
	}
	if own := ownName(v); string(own) != name {
		return &NameError{name, string(own)}
	}
	return nil
}

// ownName returns the last field 1, which is the one that counts.
func ownName(v value) (own []byte) {
	for _, run := range v {
		for len(run) > 0 {
			num, typ, n := protowire.ConsumeTag(run)
			if n < 0 {
				return own
			}
			size := protowire.ConsumeFieldValue(num, typ, run[n:])
			if size < 0 {
				return own
			}
			if num == 1 && typ == protowire.BytesType {
				own, _ = protowire.ConsumeBytes(run[n:])
			}
			run = run[n+size:]
		}
	}
	return own
}
