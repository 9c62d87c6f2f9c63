// Package nacos is the built-in plugin registry/nacos: services and their instances from Nacos, by
// the gRPC protocol that Nacos' own clients speak since version 2.
//
// payload.go, answer.go and connection.go are that protocol, login.go asks for tokens; link.go
// follows one namespace on one connection, view.go says what the answers together mean, registry.go
// runs it all; mapping.go makes an instance what the mesh knows, lost.go says why some of it can't
// be.
package nacos

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns registry/nacos.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/nacos",
		Version:   "1",
		Publishes: instances.Tables(),
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) { return New(&c) }),
	}
}
