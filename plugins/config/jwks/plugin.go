// Package jwks is the built-in plugin config/jwks: it fetches the key sets (RFC 7517) that rules for tokens name by a URI, or that
// their issuers publish (OpenID Connect Discovery 1.0, section 4).
//
// wants.go says what rows ask for, fetch.go gets one set, schedule.go decides what is due, source.go runs it all.
package jwks

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Table of key sets: the key of a row is the rule's jwksUri, or its issuer where it names none; its payload is the set as text.
const Table = "jwks"

// Plugin returns config/jwks.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/jwks",
		Version:   "1",
		Reads:     []string{kinds.RequestAuthentication},
		Publishes: []string{Table},
		New: sdk.WithRawConfig([]byte(schema), func(config []byte) (sdk.ConfigSource, error) {
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
  "properties": {
    "refresh": {"type": "string", "default": "20m", "description": "How old a key set may become until it is fetched again."},
    "retry": {"type": "string", "default": "1s", "description": "How long to wait after a failure; each further one doubles it."},
    "maxRetry": {"type": "string", "default": "5m", "description": "The longest wait after failures."},
    "timeout": {"type": "string", "default": "5s", "description": "How long a fetch may take where the rule doesn't say."},
    "maxBytes": {"type": "integer", "minimum": 1, "default": 1048576, "description": "The largest answer that is taken."},
    "concurrent": {"type": "integer", "minimum": 1, "default": 8, "description": "How many sets are fetched at once."},
    "caFile": {"type": "string", "description": "PEM file with roots that are trusted besides the system's."},
    "blockedCIDRs": {"type": "array", "items": {"type": "string"}, "description": "Addresses that are never connected to."}
  }
}`
