package telemetry

import (
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Target is where a provider is; the zero value is nowhere.
type Target struct{ Host, Cluster string }

func (f Find) target(service string, port uint32) Target {
	host, ok := f(service)
	if !ok {
		return Target{}
	}
	return Target{Host: host, Cluster: "outbound|" + strconv.FormatUint(uint64(port), 10) + "||" + host}
}

// found reports whether there is such a service.
func (t Target) found() bool { return t.Host != "" }

func (t Target) grpc() *core.GrpcService {
	return &core.GrpcService{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: t.Cluster, Authority: t.Host},
	}}
}

// http calls a URI of the target.
func (t Target) http(uri string, timeout *durationpb.Duration, headers []*meshv1.MeshConfig_ExtensionProvider_HttpHeader) *core.HttpService {
	out := &core.HttpService{HttpUri: &core.HttpUri{
		Uri:              uri,
		HttpUpstreamType: &core.HttpUri_Cluster{Cluster: t.Cluster},
		Timeout:          timeout,
	}}
	for _, h := range headers {
		out.RequestHeadersToAdd = append(out.RequestHeadersToAdd, &core.HeaderValueOption{
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			Header:       &core.HeaderValue{Key: h.Name, Value: h.GetValue()},
		})
	}
	return out
}
