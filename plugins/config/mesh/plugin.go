// Package mesh is the config source of the mesh's own settings: MeshConfig, with istiod's defaults, and MeshNetworks.
package mesh

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns config/mesh.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/mesh",
		Version:   "1",
		Publishes: []string{state.Mesh, state.Networks, kinds.FaultTable},
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return New(c)
		}),
	}
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "meshConfig": {"type": "string", "description": "A file with a MeshConfig, in place of the ConfigMap's; /dev/null is an empty one."},
    "networksConfig": {"type": "string", "description": "A file with a MeshNetworks, in place of the ConfigMap's; /dev/null is an empty one."},
    "configMap": {"type": "string", "description": "A ConfigMap with a MeshConfig under mesh and a MeshNetworks under meshNetworks; none without, and no API server is asked."},
    "sharedConfigMap": {"type": "string", "description": "A ConfigMap like it that is applied first; of networks, it counts alone."},
    "namespace": {"type": "string", "default": "istio-system", "description": "Where the ConfigMaps are."},
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."},
    "settle": {"type": "string", "default": "20ms", "description": "How long a file must be quiet before it is read."},
    "rescan": {"type": "string", "default": "1m", "description": "How often the files are looked at even without an event; 0s: never."}
  }
}`
