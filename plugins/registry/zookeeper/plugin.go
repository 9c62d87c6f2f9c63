// Package zookeeper is the built-in plugin registry/zookeeper: Dubbo's providers in ZooKeeper, by
// interface (Dubbo 2) and by application (Dubbo 3), and what else registers by Curator's service
// discovery.
//
// session.go keeps up a session with ZooKeeper and reads nodes in it; follow.go says what is read
// and when; registry.go runs it all. provider.go, instance.go and override.go read what stands in
// nodes, host.go names services, mapping.go and port.go make what the mesh knows of it, book.go
// makes rows of that, lost.go counts what could not be mapped.
package zookeeper

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns registry/zookeeper.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/zookeeper",
		Version:   "1",
		Publishes: []string{state.Services, state.Endpoints, state.Faults},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) { return registry{&c}, nil }),
	}
}
