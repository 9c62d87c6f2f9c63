package xds

import (
	"github.com/coxswain-mesh/coxswain/core/view"
	"google.golang.org/protobuf/encoding/protowire"
)

// ClusterType is the type whose resources name others: Envoy makes a changed cluster anew and then
// waits for its endpoints, even if it has them (docs/decisions/ads-order.md).
const ClusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// Fields of envoy.config.cluster.v3.Cluster and its EdsClusterConfig.
const (
	fieldEDSClusterConfig protowire.Number = 3
	fieldServiceName      protowire.Number = 2
)

// dependents returns the names under which resources of the next type belong to those of a type:
// their own, or the service name of a cluster.
func dependents(typeURL string, bodies []*view.Body) []string {
	names := make([]string, 0, len(bodies))
	for _, b := range bodies {
		name := b.Name()
		if typeURL == ClusterType {
			_, eds := lastField(b.Value(), fieldEDSClusterConfig)
			if _, service := lastField(eds, fieldServiceName); len(service) > 0 {
				name = string(service)
			}
		}
		names = append(names, name)
	}
	return names
}

// lastField returns the last length-delimited value of a field in an encoded message.
func lastField(b []byte, want protowire.Number) (found bool, value []byte) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return found, value
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return found, value
		}
		if number == want && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b)
			found = true
		}
		b = b[n:]
	}
	return found, value
}
