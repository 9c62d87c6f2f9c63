package encode

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Secrets that an agent serves its proxy on the bootstrap's cluster sds-grpc.
const (
	WorkloadCertificate = "default"
	WorkloadRoots       = "ROOTCA"
	agentCluster        = "sds-grpc"
)

// readerCluster is where a server of the proxy's own reads files, of the bootstrap as well.
const readerCluster = "sds-files-grpc"

// AgentSecret names a secret of the workload, for which the proxy waits as long as it takes.
func AgentSecret(name string) *tls.SdsSecretConfig {
	s := secretFrom(agentCluster, name)
	s.SdsConfig.InitialFetchTimeout = durationpb.New(0)
	return s
}

// secretFrom names a secret that a cluster serves.
func secretFrom(cluster, name string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_ApiConfigSource{ApiConfigSource: &core.ApiConfigSource{
			ApiType:                   core.ApiConfigSource_GRPC,
			TransportApiVersion:       core.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*core.GrpcService{{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{
				EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: cluster},
			}}},
		}},
		ResourceApiVersion: core.ApiVersion_V3,
	}}
}
