package encode

import (
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// RootsSuffix makes a credential's name that of the roots which go with it.
const RootsSuffix = "-cacert"

// InvalidSecret begins the names of credentials that can't be used, which nobody has.
const InvalidSecret = "invalid://"

const (
	kubernetesSecret = "kubernetes://"
	builtinSecret    = "builtin://"
	externalSecret   = "sds://"
	// SocketCluster is that of the socket (SecretSocket) beside a proxy that serves external
	// secrets.
	SocketCluster = "sds-external"
	SecretSocket  = "./var/run/secrets/credential-uds/socket"
)

// External is who serves the credentials called sds://NAME, where NAME is the credential's own and
// not that of an extension provider (as before Istio 1.30.1). The zero value: the control plane, as
// secrets of Kubernetes.
type External struct {
	// Socket: the proxy has a socket of its own for them.
	Socket bool
	// Cluster of the mesh's service for them, which counts where the proxy has no socket; empty:
	// none.
	Cluster string
	// Alone: the proxy has no agent.
	Alone bool
}

// patience is how long a proxy without an agent waits for a secret of the control plane until it
// serves what it can without. An Envoy that speaks the state of the world can't be told that there
// is none: it would wait for 15 s, with all listeners. Agents speak delta, which can say so.
const patience = 2 * time.Second

// Credential names a secret that the control plane serves on the proxy's own stream: by default one
// of Kubernetes in the proxy's namespace; builtin:// means the workload's own certificate, and
// sds:// one that others serve, if somebody does.
func (e External) Credential(name string) *tls.SdsSecretConfig {
	switch name {
	case builtinSecret:
		return AgentSecret(WorkloadCertificate)
	case builtinSecret + RootsSuffix:
		return AgentSecret(WorkloadRoots)
	}
	if bare, ok := strings.CutPrefix(name, externalSecret); ok {
		switch {
		case e.Socket:
			return secretFrom(SocketCluster, name)
		case e.Cluster != "":
			return secretFrom(e.Cluster, bare)
		}
		name = bare
	}
	s := &tls.SdsSecretConfig{Name: resource(name), SdsConfig: &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		ResourceApiVersion:    core.ApiVersion_V3,
	}}
	if e.Alone {
		s.SdsConfig.InitialFetchTimeout = durationpb.New(patience)
	}
	return s
}

// resource is the name by which a proxy asks for a credential.
func resource(name string) string {
	switch {
	case strings.HasPrefix(name, builtinSecret):
		return WorkloadCertificate
	case strings.HasPrefix(name, InvalidSecret):
		return InvalidSecret
	}
	for _, known := range []string{kubernetesSecret, "kubernetes-gateway://", "configmap://"} {
		if strings.HasPrefix(name, known) {
			return name
		}
	}
	return kubernetesSecret + name
}
