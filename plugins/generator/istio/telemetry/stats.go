package telemetry

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/anypb"
	"istio.io/api/envoy/extensions/stats"
	meshv1 "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// prometheusName is what a metric of Istio's is called in Prometheus.
func prometheusName(metric string) string {
	switch metric {
	case "REQUEST_COUNT":
		return "requests_total"
	case "REQUEST_DURATION":
		return "request_duration_milliseconds"
	case "REQUEST_SIZE":
		return "request_bytes"
	case "RESPONSE_SIZE":
		return "response_bytes"
	case "TCP_OPENED_CONNECTIONS":
		return "tcp_connections_opened_total"
	case "TCP_CLOSED_CONNECTIONS":
		return "tcp_connections_closed_total"
	case "TCP_SENT_BYTES":
		return "tcp_sent_bytes_total"
	case "TCP_RECEIVED_BYTES":
		return "tcp_received_bytes_total"
	case "GRPC_REQUEST_MESSAGES":
		return "request_messages_total"
	case "GRPC_RESPONSE_MESSAGES":
		return "response_messages_total"
	}
	return metric
}

// stats are the filters of the providers that keep metrics: one for each that is Prometheus.
func (in *Input) stats() []*anypb.Any {
	var out []*anypb.Any
	chosen := in.metrics()
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		_, ok := in.provider(name).GetProvider().(*meshv1.MeshConfig_ExtensionProvider_Prometheus)
		if ok && !chosen[name].off {
			out = append(out, encode.Any(chosen[name].config(in.Side)))
		}
	}
	return out
}

func (s *metrics) config(side Side) *stats.PluginConfig {
	out := &stats.PluginConfig{
		DisableHostHeaderFallback: side != Outbound,
		TcpReportingDuration:      s.interval,
	}
	for _, name := range slices.Sorted(maps.Keys(s.overrides)) {
		out.Metrics = append(out.Metrics, s.overrides[name].config(prometheusName(name)))
	}
	return out
}

func (o *override) config(name string) *stats.MetricConfig {
	out := &stats.MetricConfig{Name: name, Drop: o.off, Dimensions: map[string]string{}}
	for _, tag := range slices.Sorted(maps.Keys(o.tags)) {
		if t := o.tags[tag]; t.GetOperation() == api.MetricsOverrides_TagOverride_REMOVE {
			out.TagsToRemove = append(out.TagsToRemove, tag)
		} else {
			out.Dimensions[tag] = t.GetValue()
		}
	}
	return out
}
