// Package file is the config source that reads Istio's resources from a directory of YAML and JSON files and follows what
// happens to them.
package file

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns config/file.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/file",
		Version:   "1",
		Publishes: append(kinds.Tables(), secrets.SecretTable, secrets.ConfigMapTable, kinds.FaultTable),
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.ConfigSource, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return New(c), nil
		}),
	}
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["dir"],
  "properties": {
    "dir": {"type": "string", "description": "The directory, read with all that is below it."},
    "settle": {"type": "string", "default": "20ms", "description": "How long a path must be quiet before it is read."},
    "rescan": {"type": "string", "default": "1m", "description": "How often everything is looked at even without an event; 0s: never."},
    "maxFile": {"type": "integer", "default": 33554432, "description": "Bytes beyond which a file is refused."}
  }
}`
