// Package mesh is the config source of the mesh's own settings: MeshConfig, with istiod's defaults, and MeshNetworks.
package mesh

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns config/mesh.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:         "config/mesh",
		Version:      "1",
		Publishes:    []string{state.Mesh, state.Networks, kinds.FaultTable},
		ConfigSchema: []byte(schema),
		Kind: sdk.ConfigSourceKind(func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return New(c), nil
		}),
	}
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "meshConfig": {"type": "string", "description": "A file with a MeshConfig; the defaults count without."},
    "networksConfig": {"type": "string", "description": "A file with a MeshNetworks; there are no networks without."},
    "settle": {"type": "string", "default": "20ms", "description": "How long a file must be quiet before it is read."},
    "rescan": {"type": "string", "default": "1m", "description": "How often the files are looked at even without an event; 0s: never."}
  }
}`
