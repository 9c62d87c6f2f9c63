// Package etcd is the built-in plugin config/etcd: resources of Istio and of the Gateway API, and
// Ingresses, in an etcd, one key each.
//
// keys.go says which key an object has, source.go makes rows of the values and publishes those that
// have changed. store.go reads and writes objects for other plugins; object.go is what it changes
// in them.
package etcd

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	etcd.Access
	// Prefix of the keys.
	Prefix string `json:"prefix" min:"1" doc:"Keys are PREFIX and GROUP/KIND/NAMESPACE/NAME; GROUP/KIND/NAME of GatewayClass and IngressClass."`
	// Revision is that of this control plane; empty: all resources count, whatever their
	// istio.io/rev.
	Revision string `json:"revision" doc:"This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."`
	// Writes: it takes writes of all kinds that it publishes, and of Leases.
	Writes bool   `json:"writes" doc:"Write objects for plugins that are granted that (allow.store). Of several sources that publish the same kinds, one may."`
	Limits limits `json:"limits"`
}

// limits bound what is taken from etcd.
type limits struct {
	Objects uint32 `json:"objects" min:"1" doc:"Of more keys, the first in order count."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Prefix: "/coxswain/config/", Writes: true, Limits: limits{100_000}}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	switch {
	case c.Prefix == "":
		return strict.Errorf("prefix", "is empty")
	case c.Limits.Objects == 0:
		return strict.Errorf("limits.objects", "at least 1")
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/etcd",
		Version:   "1",
		Publishes: append(tables(), kinds.FaultTable),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) {
			return newSource(c), nil
		}),
	}
}
