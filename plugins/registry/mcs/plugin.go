// Package mcs is the built-in plugin registry/mcs: the names that Kubernetes' Multi-Cluster
// Services have in all clusters together.
//
// It derives: what it publishes is a function of the exports, imports, services and endpoints that
// other registries have.
package mcs

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name:      "registry/mcs",
		Version:   "1",
		Reads:     []string{mcs.Exports, mcs.Imports, state.Services + "@sources", state.Endpoints + "@sources"},
		Publishes: []string{state.Services, state.Endpoints},
		New:       sdk.WithoutConfig(func() (sdk.Deriver, error) { return newDeriver(), nil }),
	}
}
