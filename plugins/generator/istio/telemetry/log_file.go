package telemetry

import (
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	withoutquery "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/req_without_query/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// text is Istio's line for a request or a connection.
const text = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
	`%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% ` +
	`%DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" ` +
	`"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% ` +
	`%DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%` + "\n"

// fields are Istio's fields of the same in JSON.
func fields() *structpb.Struct {
	return encode.Struct(map[string]any{
		"start_time":                        "%START_TIME%",
		"route_name":                        "%ROUTE_NAME%",
		"method":                            "%REQ(:METHOD)%",
		"path":                              "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
		"protocol":                          "%PROTOCOL%",
		"response_code":                     "%RESPONSE_CODE%",
		"response_flags":                    "%RESPONSE_FLAGS%",
		"response_code_details":             "%RESPONSE_CODE_DETAILS%",
		"connection_termination_details":    "%CONNECTION_TERMINATION_DETAILS%",
		"bytes_received":                    "%BYTES_RECEIVED%",
		"bytes_sent":                        "%BYTES_SENT%",
		"duration":                          "%DURATION%",
		"upstream_service_time":             "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
		"x_forwarded_for":                   "%REQ(X-FORWARDED-FOR)%",
		"user_agent":                        "%REQ(USER-AGENT)%",
		"request_id":                        "%REQ(X-REQUEST-ID)%",
		"authority":                         "%REQ(:AUTHORITY)%",
		"upstream_host":                     "%UPSTREAM_HOST%",
		"upstream_cluster":                  "%UPSTREAM_CLUSTER_RAW%",
		"upstream_local_address":            "%UPSTREAM_LOCAL_ADDRESS%",
		"downstream_local_address":          "%DOWNSTREAM_LOCAL_ADDRESS%",
		"downstream_remote_address":         "%DOWNSTREAM_REMOTE_ADDRESS%",
		"requested_server_name":             "%REQUESTED_SERVER_NAME%",
		"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
	})
}

// fileLog writes lines of a format; of Envoy's own if nil.
func fileLog(path string, f *core.SubstitutionFormatString) *accesslogv3.AccessLog {
	out := &filev3.FileAccessLog{Path: path}
	if f != nil {
		out.AccessLogFormat = &filev3.FileAccessLog_LogFormat{LogFormat: f}
	}
	return logger("envoy.access_loggers.file", out)
}

// meshFile is a file in the format of the mesh. A JSON format that can't be read is Istio's.
func (in *Input) meshFile(path string) *accesslogv3.AccessLog {
	format := in.Mesh.AccessLogFormat
	if in.Mesh.AccessLogEncoding != meshv1.MeshConfig_JSON {
		return fileLog(path, textFormat(format))
	}
	labels := &structpb.Struct{}
	if format == "" || protojson.Unmarshal([]byte(format), labels) != nil {
		labels = fields()
	}
	return fileLog(path, jsonLabels(labels))
}

// textFormat is a format that ends its lines; Istio's if empty.
func textFormat(format string) *core.SubstitutionFormatString {
	if format == "" {
		format = text
	}
	if !strings.HasSuffix(format, "\n") {
		format += "\n"
	}
	return &core.SubstitutionFormatString{
		Format: &core.SubstitutionFormatString_TextFormatSource{TextFormatSource: &core.DataSource{
			Specifier: &core.DataSource_InlineString{InlineString: format},
		}},
		Formatters: formatters(format, nil),
	}
}

// jsonFormat is a format of labels; Istio's without any.
func jsonFormat(labels *structpb.Struct) *core.SubstitutionFormatString {
	if len(labels.GetFields()) == 0 {
		labels = fields()
	}
	return jsonLabels(labels)
}

func jsonLabels(labels *structpb.Struct) *core.SubstitutionFormatString {
	return &core.SubstitutionFormatString{
		Format:            &core.SubstitutionFormatString_JsonFormat{JsonFormat: labels},
		JsonFormatOptions: &core.JsonFormatOptions{},
		Formatters:        formatters("", labels),
	}
}

// formatters are the extensions that commands of a format need.
func formatters(format string, labels *structpb.Struct) []*core.TypedExtensionConfig {
	const command = "%REQ_WITHOUT_QUERY"
	used := strings.Contains(format, command)
	for _, v := range labels.GetFields() {
		used = used || strings.Contains(v.GetStringValue(), command)
	}
	if !used {
		return nil
	}
	return []*core.TypedExtensionConfig{{
		Name:        "envoy.formatter.req_without_query",
		TypedConfig: encode.Any(&withoutquery.ReqWithoutQuery{}),
	}}
}
