// Package serviceentry is the built-in plugin registry/serviceentry: it makes services, endpoints and workloads out of Istio's
// ServiceEntry and WorkloadEntry resources. Pods stand behind ServiceEntries that select them, and WorkloadEntries behind services of a cluster that do.
//
// It derives: what it publishes is a function of the rows that it reads. entry.go and workload.go read resources, group.go and
// endpoint.go make rows of them, index.go knows what concerns what, and deriver.go does as little of all this as a change asks for.
package serviceentry

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Cluster is the cluster that endpoints are said to be in; `Kubernetes` if absent, as istiod names its own.
	Cluster string `json:"cluster"`
	// SelectPods has ServiceEntries select pods, too, SelectWorkloadEntries has a cluster's services select WorkloadEntries.
	SelectPods            bool `json:"selectPods"`
	SelectWorkloadEntries bool `json:"selectWorkloadEntries"`
}

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "cluster": {"type": "string", "default": "Kubernetes", "description": "Cluster that endpoints are said to be in."},
    "selectPods": {"type": "boolean", "default": true, "description": "Whether selectors of ServiceEntries find pods of a cluster, too."},
    "selectWorkloadEntries": {"type": "boolean", "default": true, "description": "Whether selectors of a cluster's services find WorkloadEntries, too."}
  }
}`

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name:      "registry/serviceentry",
		Version:   "1",
		Reads:     []string{kinds.ServiceEntry, kinds.WorkloadEntry, state.Services + "@sources", state.Workloads + "@sources"},
		Publishes: []string{state.Services, state.Endpoints, state.Workloads},
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.Deriver, error) {
			c, err := parseConfig(config)
			if err != nil {
				return nil, err
			}
			return newDeriver(c), nil
		}),
	}
}

func parseConfig(config []byte) (Config, error) {
	c := Config{Cluster: "Kubernetes", SelectPods: true, SelectWorkloadEntries: true}
	return c, strict.Decode(config, &c)
}
