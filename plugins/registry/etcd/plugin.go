// Package etcd is the built-in plugin registry/etcd: instances that stand in an etcd, one key each.
//
// record.go reads a record. services.go makes the rows of a service of its records; registry.go
// follows the prefix and publishes those that have changed.
package etcd

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	etcd.Access
	// Prefix of the keys.
	Prefix string `json:"prefix" min:"1" doc:"Each key that begins with it is an instance."`
	// Cluster that the endpoints are said to be in.
	Cluster string `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	Limits  limits `json:"limits"`
}

// limits bound what is taken from etcd.
type limits struct {
	Records     uint32 `json:"records" min:"1" doc:"Of more keys, the first in order count."`
	RecordBytes uint32 `json:"recordBytes" min:"1" max:"900000" doc:"A larger record is refused."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Prefix: "/coxswain/instances/", Cluster: "Kubernetes", Limits: limits{100_000, 64 << 10}}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	switch {
	case c.Prefix == "":
		return strict.Errorf("prefix", "is empty")
	case c.Limits.Records == 0:
		return strict.Errorf("limits.records", "at least 1")
	case c.Limits.RecordBytes == 0 || c.Limits.RecordBytes > 900_000:
		return strict.Errorf("limits.recordBytes", "%d is not between 1 and 900000", c.Limits.RecordBytes)
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/etcd",
		Version:   "1",
		Publishes: []string{state.Services, state.Endpoints, state.Faults},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) {
			return registry{c}, nil
		}),
	}
}
