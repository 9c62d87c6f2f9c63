package endpoint

import (
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// socketMatch is the metadata by which clusters choose how to speak to an endpoint.
const socketMatch = "envoy.transport_socket_match"

// mutual reports whether clients speak the mesh's mutual TLS to an endpoint.
func (s *Spec) mutual(e *Endpoint) bool { return e.TlsMode == Mutual && !s.Plaintext }

// onlyMutual leaves out endpoints that don't speak the mesh's mutual TLS: what comes through a
// gateway unopened must not reach them.
func onlyMutual(a *endpointv3.ClusterLoadAssignment) {
	for _, l := range a.Endpoints {
		l.LbEndpoints = slices.DeleteFunc(l.LbEndpoints, func(e *endpointv3.LbEndpoint) bool {
			return e.GetMetadata().GetFilterMetadata()[socketMatch] == nil
		})
		l.LoadBalancingWeight = nil
		if len(l.LbEndpoints) > 0 {
			l.LoadBalancingWeight = wrapperspb.UInt32(weightOf(l.LbEndpoints))
		}
	}
}

func weightOf(list []*endpointv3.LbEndpoint) uint32 {
	var sum uint32
	for _, e := range list {
		sum += e.GetLoadBalancingWeight().GetValue()
	}
	return sum
}
