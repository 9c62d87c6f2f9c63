// Package memory is the built-in plugin registry/memory: a registry whose services stand in its own
// config.
package memory

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/memory",
		Version:   "1",
		Publishes: []string{state.Services, state.Endpoints},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) {
			return registry{c}, nil
		}),
	}
}

type registry struct{ Config }

// Run publishes the services, and then waits: what stands in a config doesn't change.
func (r registry) Run(ctx context.Context, out sdk.Publisher) error {
	services, endpoints := rows(r.Config)
	if err := out.Update(state.Services, services, nil); err != nil {
		return err
	}
	if err := out.Update(state.Endpoints, endpoints, nil); err != nil {
		return err
	}
	if err := out.Synced(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
