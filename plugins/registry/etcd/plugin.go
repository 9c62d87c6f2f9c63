// Package etcd is the built-in plugin registry/etcd: instances that stand in an etcd, one key each.
//
// record.go reads a record. services.go makes the rows of a service of its records; registry.go follows the prefix and
// publishes those that have changed.
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
	Prefix string `json:"prefix"`
	// Cluster that the endpoints are said to be in.
	Cluster string `json:"cluster"`
	Limits  limits `json:"limits"`
}

// limits bound what is taken from etcd.
type limits struct {
	Records     uint32 `json:"records"`
	RecordBytes uint32 `json:"recordBytes"`
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["endpoints"],
  "properties": {` + etcd.AccessSchema + `,
    "prefix": {"type": "string", "minLength": 1, "default": "/coxswain/instances/", "description": "Each key that begins with it is an instance."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster that the endpoints are said to be in."},
    "limits": {"type": "object", "additionalProperties": false, "properties": {
      "records": {"type": "integer", "minimum": 1, "default": 100000, "description": "Of more keys, the first in order count."},
      "recordBytes": {"type": "integer", "minimum": 1, "maximum": 900000, "default": 65536, "description": "A larger record is refused."}
    }}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Prefix: "/coxswain/instances/", Cluster: "Kubernetes", Limits: limits{100_000, 64 << 10}}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Prefix == "":
		return c, strict.Errorf("prefix", "is empty")
	case c.Limits.Records == 0:
		return c, strict.Errorf("limits.records", "at least 1")
	case c.Limits.RecordBytes == 0 || c.Limits.RecordBytes > 900_000:
		return c, strict.Errorf("limits.recordBytes", "%d is not between 1 and 900000", c.Limits.RecordBytes)
	}
	return c, c.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/etcd",
		Version:   "1",
		Publishes: []string{state.Services, state.Endpoints, state.Faults},
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return registry{c}, nil
		}),
	}
}
