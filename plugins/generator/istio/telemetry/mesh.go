package telemetry

import (
	"slices"
	"strings"

	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Mesh are those of the mesh's settings that reports depend on.
func Mesh(m *meshv1.MeshConfig) *meshv1.MeshConfig {
	return &meshv1.MeshConfig{
		ExtensionProviders:          m.ExtensionProviders,
		DefaultProviders:            m.DefaultProviders,
		AccessLogFile:               m.AccessLogFile,
		AccessLogFormat:             m.AccessLogFormat,
		AccessLogEncoding:           m.AccessLogEncoding,
		EnableEnvoyAccessLogService: m.EnableEnvoyAccessLogService,
		DisableEnvoyListenerLog:     m.DisableEnvoyListenerLog,
		EnableTracing:               m.EnableTracing,
	}
}

// Provider is the mesh's extension provider of a name, in whatever case; nil without one.
func Provider(m *meshv1.MeshConfig, name string) *meshv1.MeshConfig_ExtensionProvider {
	i := slices.IndexFunc(m.ExtensionProviders, func(p *meshv1.MeshConfig_ExtensionProvider) bool {
		return strings.EqualFold(p.Name, name)
	})
	if i < 0 {
		return nil
	}
	return m.ExtensionProviders[i]
}
