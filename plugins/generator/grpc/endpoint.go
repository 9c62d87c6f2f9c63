package grpc

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// assignment are a cluster's endpoints.
func (c *catalog) assignment(v view, at subset, s *pb.Service, p *pb.Port) proto.Message {
	policies, selected, ok := c.policies(v, at, p)
	if !ok || looked(s) {
		return nil
	}
	endpoints := slices.DeleteFunc(c.reachable(v, s, p, selected), func(e *pb.Endpoint) bool { return !hosts.IsIP(e.Address) })
	out := assign(at.String(), endpoints)
	if setting := c.failover(policies); setting != nil {
		prioritize(out, v.Locality, setting)
	}
	return out
}

// reachable are a port's endpoints that take calls, have the labels, and are for clients of the
// view's cluster.
func (c *catalog) reachable(v view, s *pb.Service, p *pb.Port, selected map[string]string) []*pb.Endpoint {
	local := clusterlocal.Has(c.local, s.Host)
	var out []*pb.Endpoint
	for _, e := range c.endpoints[kinds.Key(s.Namespace, s.Host)] {
		if e.PortName != p.Name || e.Address == "" || !v.near(e, local) {
			continue
		}
		if (e.Health == pb.EndpointHealthHealthy || e.Health == pb.EndpointHealthReady) && istio.Selects(selected, hosts.AllLabels(e)) {
			out = append(out, e)
		}
	}
	return out
}

// near reports whether an endpoint isn't for clients of another cluster alone: all endpoints of a
// host that is cluster-local are, and those that say so.
func (v view) near(e *pb.Endpoint, local bool) bool {
	return v.Cluster == "" || e.Cluster == "" || e.Cluster == v.Cluster || !local && !e.SameCluster
}

// assign groups endpoints by where they are. A place weighs as much as all in it; one without a
// weight would be left out. Of endpoints with one address the first counts: gRPC refuses to have an
// address twice in a cluster (A27).
func assign(name string, endpoints []*pb.Endpoint) *endpointv3.ClusterLoadAssignment {
	places := map[string]*endpointv3.LocalityLbEndpoints{}
	seen := map[string]bool{}
	for _, e := range endpoints {
		at := net.JoinHostPort(e.Address, fmt.Sprint(e.Port))
		if seen[at] {
			continue
		}
		seen[at] = true
		place := places[e.Locality]
		if place == nil {
			place = &endpointv3.LocalityLbEndpoints{Locality: locality(e.Locality), LoadBalancingWeight: wrapperspb.UInt32(0)}
			places[e.Locality] = place
		}
		weight := max(e.Weight, 1)
		place.LoadBalancingWeight.Value += weight
		place.LbEndpoints = append(place.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.Address, e.Port)}},
			LoadBalancingWeight: wrapperspb.UInt32(weight),
			HealthStatus:        corev3.HealthStatus_HEALTHY,
		})
	}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for _, at := range slices.Sorted(maps.Keys(places)) {
		out.Endpoints = append(out.Endpoints, places[at])
	}
	return out
}

// locality reads REGION/ZONE/SUBZONE.
func locality(s string) *corev3.Locality {
	parts := append(strings.SplitN(s, "/", 3), "", "")
	return &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}
