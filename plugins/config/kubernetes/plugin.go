// Package kubernetes is the built-in plugin config/kubernetes: Istio's resources of a Kubernetes API server.
//
// events.go says in Events why objects are held. store.go writes them for other plugins. watch.go keeps what the API server has of each kind, from when it serves the kind; source.go makes rows of it and publishes those that
// have changed.
package kubernetes

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Revision is that of this control plane; empty: all resources count, whatever their istio.io/rev.
	Revision string `json:"revision"`
	// Writes: it takes writes of all kinds that it publishes, and of Leases.
	Writes bool `json:"writes"`
	// Events: an object that is held gets a Kubernetes Event that says why.
	Events bool `json:"events"`
	// DiscoverySelectors: namespaces that the mesh's discoverySelectors leave out are left out.
	DiscoverySelectors bool `json:"discoverySelectors"`
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "revision": {"type": "string", "description": "This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."},
    "writes": {"type": "boolean", "default": true, "description": "Write objects for plugins that are granted that (allow.store). Of several sources that publish the same kinds, one may."},
    "events": {"type": "boolean", "default": true, "description": "Write a Kubernetes Event of each object that is faulty, with the reason."},
    "discoverySelectors": {"type": "boolean", "default": true, "description": "Whether the mesh's discoverySelectors say which namespaces count."},
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Access: kube.DefaultAccess(), Writes: true, Events: true, DiscoverySelectors: true}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	return c, c.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/kubernetes",
		Version:   "1",
		Reads:     []string{state.Mesh},
		Publishes: append(kinds.Tables(), kinds.FaultTable),
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			s, err := connect(c)
			if err != nil {
				return nil, err
			}
			return newSource(c, s), nil
		}),
	}
}
