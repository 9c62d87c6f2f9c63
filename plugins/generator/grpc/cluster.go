package grpc

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// cluster is a port of a service, or the part of it that a subset selects (A27). Where there is no
// such service (s is nil), no such port (p is) or subset, it is one without endpoints: a client
// that gets no answer waits 15 seconds for one.
func (c *catalog) cluster(v view, at subset, s *pb.Service, p *pb.Port) proto.Message {
	out := discovered(at)
	if p == nil {
		return out
	}
	policies, selected, ok := c.policies(v, at, p)
	if !ok {
		return out
	}
	endpoints := c.reachable(v, s, p, selected)
	if looked(s) {
		lookUp(out, endpoints)
	}
	for _, t := range policies {
		limit(out, t.GetConnectionPool())
	}
	if c.mutual(s, policies) {
		out.TransportSocket = clientTLS(c.names(s, endpoints, policies))
	}
	return out
}

// discovered is a cluster whose endpoints come by EDS.
func discovered(at subset) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 at.String(),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: aggregated(), ServiceName: at.String()},
		LbPolicy:             clusterv3.Cluster_ROUND_ROBIN,
	}
}

// looked reports whether clients look the service's endpoints up by DNS.
func looked(s *pb.Service) bool {
	return s.Resolution == pb.ServiceResolutionDns || s.Resolution == pb.ServiceResolutionDnsRoundRobin
}

// lookUp makes the cluster one of a single name, which is all that gRPC looks up (A37).
func lookUp(c *clusterv3.Cluster, endpoints []*pb.Endpoint) {
	c.ClusterDiscoveryType, c.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}, nil
	c.LoadAssignment = assign(c.Name, endpoints[:min(1, len(endpoints))])
}

// limit sets how many calls there may be at once (A32).
func limit(c *clusterv3.Cluster, pool *networking.ConnectionPoolSettings) {
	if n := pool.GetHttp().GetHttp2MaxRequests(); n > 0 {
		c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			Priority: corev3.RoutingPriority_DEFAULT, MaxRequests: wrapperspb.UInt32(uint32(n)),
		}}}
	}
}

// mutual reports whether clients show a certificate: as the rules say, and where they say nothing,
// whether the service's namespace takes nothing else.
func (c *catalog) mutual(s *pb.Service, policies []*networking.TrafficPolicy) bool {
	for _, t := range policies {
		if tls := t.GetTls(); tls != nil {
			return tls.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL
		}
	}
	return !s.External && c.modes(identity{namespace: s.Namespace})[0] == security.PeerAuthentication_MutualTLS_STRICT.String()
}

// names are those of which a server must show one.
func (c *catalog) names(s *pb.Service, endpoints []*pb.Endpoint, policies []*networking.TrafficPolicy) []string {
	for _, t := range policies {
		if names := t.GetTls().GetSubjectAltNames(); len(names) > 0 {
			return names
		}
	}
	return c.identities(s, endpoints)
}
