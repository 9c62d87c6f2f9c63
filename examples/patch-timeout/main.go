// Command patch-timeout is a patch: proxies wait two seconds at most for a connection to any
// cluster.
package main

import (
	"encoding/json"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func main() { sdk.Serve(plugin()) }

func plugin() sdk.PatchPlugin {
	return sdk.PatchPlugin{
		Name: "timeout", Version: "1", Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}}, JSON: true,
		New: sdk.WithoutConfig(func() (sdk.Patch, error) { return sdk.PatchFunc(patch), nil }),
	}
}

func patch(_ *state.State, _ string, _ map[string]string, clusters []sdk.Resource) ([]sdk.Resource, []string, error) {
	for i, c := range clusters {
		var fields map[string]any
		if err := json.Unmarshal(c.Body, &fields); err != nil {
			return nil, nil, err
		}
		fields["connectTimeout"] = "2s"
		clusters[i].Body, _ = json.Marshal(fields)
	}
	return clusters, nil, nil
}
