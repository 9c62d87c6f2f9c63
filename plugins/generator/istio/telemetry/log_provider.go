package telemetry

import (
	"cmp"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// envoyProvider is the file log that exists without being declared; its format is the mesh's.
const envoyProvider = "envoy"

// log is a provider's log; nil where there is no such provider, where it has no logs, or where its
// service is unknown.
func (in *Input) log(name string) *accesslogv3.AccessLog {
	p := in.provider(name)
	switch x := p.GetProvider().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLog:
		file := x.EnvoyFileAccessLog
		if p.Name == envoyProvider && file.LogFormat == nil && !file.OmitEmptyValues {
			return in.meshFile(file.Path)
		}
		return providerFile(file)
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyHttpAls:
		return in.requestService(x.EnvoyHttpAls)
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyTcpAls:
		return in.connectionService(x.EnvoyTcpAls)
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyOtelAls:
		return in.openTelemetry(x.EnvoyOtelAls)
	}
	return nil
}

func logger(name string, m proto.Message) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: encode.Any(m)}}
}

// addMeshLogs adds what the mesh's settings ask for where no provider counts.
func (in *Input) addMeshLogs(out *Reports) {
	if path := in.Mesh.AccessLogFile; path != "" {
		file := in.meshFile(path)
		out.Requests, out.Connections = append(out.Requests, file), append(out.Connections, file)
		out.Refused = append(out.Refused, filtered(file, nil, refused()))
	}
	if in.Mesh.EnableEnvoyAccessLogService {
		out.Requests = append(out.Requests, bootstrapRequests())
		out.Connections = append(out.Connections, bootstrapConnections(connectionLog))
		out.Refused = append(out.Refused, filtered(bootstrapConnections(listenerLog), nil, refused()))
	}
}

func providerFile(p *meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider) *accesslogv3.AccessLog {
	f := providerFormat(p)
	if f != nil {
		f.OmitEmptyValues = p.OmitEmptyValues
	}
	return fileLog(cmp.Or(p.Path, "/dev/stdout"), f)
}

// providerFormat is nil, for Envoy's own, where a format is given that says nothing.
func providerFormat(p *meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider) *core.SubstitutionFormatString {
	switch f := p.LogFormat.GetLogFormat().(type) {
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat_Labels:
		return jsonFormat(f.Labels)
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat_Text:
		return textFormat(f.Text)
	}
	if p.LogFormat != nil {
		return nil
	}
	return textFormat("")
}
