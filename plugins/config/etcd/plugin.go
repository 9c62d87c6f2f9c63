// Package etcd is the built-in plugin config/etcd: Istio's resources in an etcd, one key each.
//
// keys.go says which key an object has, source.go makes rows of the values and publishes those that have changed.
// store.go reads and writes objects for other plugins; object.go is what it changes in them.
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
	Prefix string `json:"prefix"`
	// Revision is that of this control plane; empty: all resources count, whatever their istio.io/rev.
	Revision string `json:"revision"`
	// Writes: it takes writes of all kinds that it publishes, and of Leases.
	Writes bool   `json:"writes"`
	Limits limits `json:"limits"`
}

// limits bound what is taken from etcd.
type limits struct {
	Objects uint32 `json:"objects"`
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["endpoints"],
  "properties": {` + etcd.AccessSchema + `,
    "prefix": {"type": "string", "minLength": 1, "default": "/coxswain/config/", "description": "Keys are PREFIX and GROUP/KIND/NAMESPACE/NAME."},
    "revision": {"type": "string", "description": "This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."},
    "writes": {"type": "boolean", "default": true, "description": "Write objects for plugins that are granted that (allow.store). Of several sources that publish the same kinds, one may."},
    "limits": {"type": "object", "additionalProperties": false, "properties": {
      "objects": {"type": "integer", "minimum": 1, "default": 100000, "description": "Of more keys, the first in order count."}
    }}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Prefix: "/coxswain/config/", Writes: true, Limits: limits{100_000}}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Prefix == "":
		return c, strict.Errorf("prefix", "is empty")
	case c.Limits.Objects == 0:
		return c, strict.Errorf("limits.objects", "at least 1")
	}
	return c, c.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/etcd",
		Version:   "1",
		Publishes: append(kinds.Tables(), kinds.FaultTable),
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return newSource(c), nil
		}),
	}
}
