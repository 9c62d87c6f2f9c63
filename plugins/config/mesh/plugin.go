// Package mesh is the config source of the mesh's own settings: MeshConfig, with istiod's defaults,
// and MeshNetworks.
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
		New:       sdk.WithConfig(usual(), func(c Config) (sdk.ConfigSource, error) { return New(c) }),
	}
}
