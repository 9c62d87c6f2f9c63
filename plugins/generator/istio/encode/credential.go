package encode

import (
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// RootsSuffix makes a credential's name that of the roots which go with it.
const RootsSuffix = "-cacert"

const (
	kubernetesSecret = "kubernetes://"
	builtinSecret    = "builtin://"
)

// Credential names a secret that the control plane serves on the proxy's own stream: by default one of Kubernetes in the proxy's
// namespace; builtin:// means the workload's own certificate.
func Credential(name string) *tls.SdsSecretConfig {
	switch name {
	case builtinSecret:
		return AgentSecret(WorkloadCertificate)
	case builtinSecret + RootsSuffix:
		return AgentSecret(WorkloadRoots)
	}
	if !strings.Contains(name, "://") {
		name = kubernetesSecret + name
	}
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		ResourceApiVersion:    core.ApiVersion_V3,
	}}
}
