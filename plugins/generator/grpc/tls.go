package grpc

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// A bootstrap of gRPC has a certificate provider of this name (A29), as Istio's agent writes it.
const (
	provider  = "default"
	ownName   = "default"
	rootsName = "ROOTCA"
	tlsSocket = "envoy.transport_sockets.tls"
)

// serverTLS asks clients for certificates of the mesh. Which names they have is no question here:
// gRPC refuses such a rule (A29).
func serverTLS() *corev3.TransportSocket {
	return transport(&tlsv3.DownstreamTlsContext{
		CommonTlsContext: common(&tlsv3.CertificateValidationContext{}), RequireClientCertificate: wrapperspb.Bool(true),
	})
}

// clientTLS shows the client's certificate to servers with one of the names; with any, where there
// are none.
func clientTLS(names []string) *corev3.TransportSocket {
	check := &tlsv3.CertificateValidationContext{}
	for _, n := range names {
		// gRPC reads no other list
		check.MatchSubjectAltNames = append(check.MatchSubjectAltNames, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: n}})
	}
	return transport(&tlsv3.UpstreamTlsContext{CommonTlsContext: common(check)})
}

func common(check *tlsv3.CertificateValidationContext) *tlsv3.CommonTlsContext {
	check.CaCertificateProviderInstance = &tlsv3.CertificateProviderPluginInstance{InstanceName: provider, CertificateName: rootsName}
	return &tlsv3.CommonTlsContext{
		TlsCertificateProviderInstance: &tlsv3.CertificateProviderPluginInstance{InstanceName: provider, CertificateName: ownName},
		ValidationContextType:          &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: check},
	}
}

func transport(m proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: tlsSocket, ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(m)}}
}

// identities are those of a service's endpoints.
func (c *catalog) identities(s *pb.Service, endpoints []*pb.Endpoint) []string {
	names := slices.Clone(s.SubjectAltNames)
	for _, e := range endpoints {
		if n := istio.AccountIdentity(e.ServiceAccount, homeOf(e), c.mesh.TrustDomain); n != "" {
			names = append(names, n)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// homeOf is the namespace of an endpoint's workload.
func homeOf(e *pb.Endpoint) string {
	if e.WorkloadNamespace != "" {
		return e.WorkloadNamespace
	}
	return e.Namespace
}
