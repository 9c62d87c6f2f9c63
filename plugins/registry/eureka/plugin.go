// Package eureka is the built-in plugin registry/eureka: applications, their instances and statuses
// from Eureka, by its REST protocol.
//
// answer.go reads what Eureka answers, client_process.go and client_wasip1.go ask, view.go says
// what the answers together mean, registry.go runs it all; mapping.go makes an instance what the
// mesh knows, lost.go says why some of it can't be.
//
// It builds for processes and as a module (folder wasm).
package eureka

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/eureka.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/eureka",
		Version:   "1",
		Publishes: instances.Tables(),
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) { return New(&c) }),
	}
}
