// Package token is the built-in plugin authenticator/token: bearer tokens from a file, which is followed while the plugin runs.
//
// No text that this package makes, for callers, logs or errors, has a token in it.
package token

import (
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns authenticator/token.
func Plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name:    "authenticator/token",
		Version: "1",
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.Authenticator, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			return New(c)
		}),
	}
}

const schema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["file"],
  "properties": {
    "file": {"type": "string", "description": "A YAML file with tokens and whose they are."},
    "settle": {"type": "string", "default": "20ms", "description": "How long the file must be quiet before it is read."},
    "rescan": {"type": "string", "default": "1m", "description": "How often the file is looked at even without an event; 0s: never."}
  }
}`
