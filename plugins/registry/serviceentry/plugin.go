// Package serviceentry is the built-in plugin registry/serviceentry: it makes services, endpoints
// and workloads out of Istio's ServiceEntry and WorkloadEntry resources. Pods stand behind
// ServiceEntries that select them, and WorkloadEntries behind services of a cluster that do.
//
// It derives: what it publishes is a function of the rows that it reads. entry.go and workload.go
// read resources, group.go and endpoint.go make rows of them, index.go knows what concerns what,
// and deriver.go does as little of all this as a change asks for.
package serviceentry

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Cluster is the cluster that endpoints are said to be in; `Kubernetes` if absent, as istiod
	// names its own.
	Cluster string `json:"cluster" doc:"Cluster that endpoints are said to be in."`
	// SelectPods has ServiceEntries select pods, too, SelectWorkloadEntries has a cluster's
	// services select WorkloadEntries.
	SelectPods            bool `json:"selectPods" doc:"Whether selectors of ServiceEntries find pods of a cluster, too."`
	SelectWorkloadEntries bool `json:"selectWorkloadEntries" doc:"Whether selectors of a cluster's services find WorkloadEntries, too."`
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name:      "registry/serviceentry",
		Version:   "1",
		Reads:     []string{kinds.ServiceEntry, kinds.WorkloadEntry, state.Services + "@sources", state.Workloads + "@sources"},
		Publishes: []string{state.Services, state.Endpoints, state.Workloads},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Deriver, error) {
			return newDeriver(c), nil
		}),
	}
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Cluster: "Kubernetes", SelectPods: true, SelectWorkloadEntries: true}
}
