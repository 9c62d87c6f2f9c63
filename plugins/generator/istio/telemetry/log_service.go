package telemetry

import (
	"cmp"
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	grpcv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	otelv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	otlp "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Names of logs in services that collect them.
const (
	requestLog       = "http_envoy_accesslog"
	connectionLog    = "tcp_envoy_accesslog"
	listenerLog      = "listener_envoy_accesslog"
	openTelemetryLog = "otel_envoy_accesslog"
)

// bootstrapService is the cluster of the collector that proxies have of their bootstrap.
const bootstrapService = "envoy_accesslog_service"

// peers are the filter states that say who is at the other end.
func peers() []string { return []string{"upstream_peer", "downstream_peer"} }

// allPeers has the names of earlier versions, too.
func allPeers() []string {
	return append(peers(), "wasm.upstream_peer", "wasm.upstream_peer_id", "wasm.downstream_peer", "wasm.downstream_peer_id")
}

func collector(service *core.GrpcService, log string, states []string) *grpcv3.CommonGrpcAccessLogConfig {
	return &grpcv3.CommonGrpcAccessLogConfig{
		LogName:                 log,
		GrpcService:             service,
		TransportApiVersion:     core.ApiVersion_V3,
		FilterStateObjectsToLog: states,
	}
}

func requestsTo(c *grpcv3.HttpGrpcAccessLogConfig) *accesslogv3.AccessLog {
	return logger("envoy.access_loggers.http_grpc", c)
}

func connectionsTo(c *grpcv3.CommonGrpcAccessLogConfig) *accesslogv3.AccessLog {
	return logger("envoy.tcp_grpc_access_log", &grpcv3.TcpGrpcAccessLogConfig{CommonConfig: c})
}

func bootstrapRequests() *accesslogv3.AccessLog {
	service := Target{Cluster: bootstrapService}.grpc()
	return requestsTo(&grpcv3.HttpGrpcAccessLogConfig{CommonConfig: collector(service, requestLog, allPeers())})
}

func bootstrapConnections(log string) *accesslogv3.AccessLog {
	return connectionsTo(collector(Target{Cluster: bootstrapService}.grpc(), log, allPeers()))
}

func statesOr(states []string) []string {
	if len(states) == 0 {
		return peers()
	}
	return states
}

func (in *Input) requestService(p *meshv1.MeshConfig_ExtensionProvider_EnvoyHttpGrpcV3LogProvider) *accesslogv3.AccessLog {
	at := in.Find.target(p.Service, p.Port)
	if !at.found() {
		return nil
	}
	return requestsTo(&grpcv3.HttpGrpcAccessLogConfig{
		CommonConfig:                    collector(at.grpc(), cmp.Or(p.LogName, requestLog), statesOr(p.FilterStateObjectsToLog)),
		AdditionalRequestHeadersToLog:   p.AdditionalRequestHeadersToLog,
		AdditionalResponseHeadersToLog:  p.AdditionalResponseHeadersToLog,
		AdditionalResponseTrailersToLog: p.AdditionalResponseTrailersToLog,
	})
}

func (in *Input) connectionService(p *meshv1.MeshConfig_ExtensionProvider_EnvoyTcpGrpcV3LogProvider) *accesslogv3.AccessLog {
	at := in.Find.target(p.Service, p.Port)
	if !at.found() {
		return nil
	}
	return connectionsTo(collector(at.grpc(), cmp.Or(p.LogName, connectionLog), statesOr(p.FilterStateObjectsToLog)))
}

func (in *Input) openTelemetry(p *meshv1.MeshConfig_ExtensionProvider_EnvoyOpenTelemetryLogProvider) *accesslogv3.AccessLog {
	at := in.Find.target(p.Service, p.Port)
	if !at.found() {
		return nil
	}
	body, labels := cmp.Or(p.LogFormat.GetText(), text), p.LogFormat.GetLabels()
	return logger("envoy.access_loggers.open_telemetry", &otelv3.OpenTelemetryAccessLogConfig{
		CommonConfig:         collector(at.grpc(), cmp.Or(p.LogName, openTelemetryLog), allPeers()),
		DisableBuiltinLabels: true,
		Body:                 &otlp.AnyValue{Value: &otlp.AnyValue_StringValue{StringValue: body}},
		Attributes:           attributes(labels.GetFields()),
		Formatters:           formatters(body, labels),
	})
}

// attributes are labels whose values are text.
func attributes(labels map[string]*structpb.Value) *otlp.KeyValueList {
	if len(labels) == 0 {
		return nil
	}
	out := &otlp.KeyValueList{}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		value := &otlp.AnyValue{Value: &otlp.AnyValue_StringValue{StringValue: labels[k].GetStringValue()}}
		out.Values = append(out.Values, &otlp.KeyValue{Key: k, Value: value})
	}
	return out
}
