package encode

import (
	"path"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Secrets is where a proxy finds the certificate and the roots of its workload: with its agent,
// with nobody, in its bootstrap, or, any other value, in files of this folder.
type Secrets string

const (
	// Agent serves them, and what it reads from files, on a socket.
	Agent Secrets = ""
	// Reader reads files where the agent doesn't: a server of the proxy's own (node metadata
	// file-credential).
	Reader Secrets = "reader"
	// Nowhere: the proxy has none, so that nothing may wait for them.
	Nowhere Secrets = "nowhere"
	// Bootstrap has them among its static resources.
	Bootstrap Secrets = "bootstrap"
)

// Any reports whether there are secrets at all.
func (s Secrets) Any() bool { return s != Nowhere }

// Served reports whether the proxy has an agent, which serves the workload's.
func (s Secrets) Served() bool { return s == Agent || s == Reader }

// Workload names a secret of the workload. In a folder, NAME.json is a response of the secret
// discovery service, read again when something is moved into the folder.
func (s Secrets) Workload(name string) *tls.SdsSecretConfig {
	switch s {
	case Agent, Reader, Nowhere:
		return AgentSecret(name)
	case Bootstrap:
		return &tls.SdsSecretConfig{Name: name}
	}
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{
			Path:             path.Join(string(s), name+".json"),
			WatchedDirectory: &core.WatchedDirectory{Path: string(s)},
		}},
		ResourceApiVersion: core.ApiVersion_V3,
	}}
}
