// Package api is the built-in plugin generator/api: the configuration itself, for other control
// planes and tools that read it by xDS ("MCP over xDS"). Each config kind is a type
// GROUP/VERSION/KIND whose resources are istio.mcp.v1alpha1.Resource; services that come from no
// ServiceEntry are among the ServiceEntries, so that a mesh can be built of what is read.
package api

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// meshType is the type of the mesh's own settings. Its one resource is the message itself.
	meshType = "core/v1alpha1/MeshConfig"
	meshBody = "type.googleapis.com/istio.mesh.v1alpha1.MeshConfig"
	// resourceBody is what all other types' resources are.
	resourceBody = "type.googleapis.com/istio.mcp.v1alpha1.Resource"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Authentication: only callers of the root namespace are served; true if absent.
	Authentication bool `json:"authentication" doc:"only callers whose verified identity is of the mesh's root namespace are served"`
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name:    "api",
		Version: "1",
		Reads:   slices.Concat([]string{state.Services, state.Mesh}, kinds.Tables(), kinds.OtherTables()),
		Types:   types(),
		New: sdk.WithConfig(Config{Authentication: true}, func(c Config) (sdk.Generator, error) {
			return &generator{config: c, made: map[string]made{}}, nil
		}),
	}
}

// types are those of all versions of all kinds. They come after what proxies need.
func types() []sdk.Type {
	const rank = 110
	all := []sdk.Type{{Url: meshType, Traits: &pb.Traits{FullState: true, Wildcard: true, Rank: rank, BodyType: meshBody}}}
	add := func(group, name string, versions []string) {
		for _, version := range versions {
			all = append(all, sdk.Type{
				Url:    group + "/" + version + "/" + name,
				Traits: &pb.Traits{FullState: true, Wildcard: true, Rank: rank, BodyType: resourceBody},
			})
		}
	}
	for _, k := range kinds.All() {
		add(k.Group(), k.Name(), k.Versions)
	}
	for _, k := range kinds.Others() {
		add(k.Group(), k.Name(), k.Versions)
	}
	return all
}
