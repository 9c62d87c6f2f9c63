// Package consul is the built-in plugin registry/consul: services, instances and their health from
// Consul, by blocking queries of its HTTP API.
//
// answer.go says what Consul answers, client_process.go and client_wasip1.go ask, watch.go judges
// answers, schedule.go says who is asked next, registry.go runs it all; mapping.go, port.go and
// label.go make an instance what the mesh knows, book.go makes rows of them, lost.go counts what
// could not be mapped.
//
// It builds for processes and, without Consul's client library, as a module (folder wasm).
package consul

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/consul.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/consul",
		Version:   "1",
		Publishes: instances.Tables(),
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) { return New(&c) }),
	}
}
