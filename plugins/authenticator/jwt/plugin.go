// Package jwt is the built-in plugin authenticator/jwt: tokens of OpenID Connect issuers (RFC 7519), checked with the issuers' keys (RFC 7517).
//
// No text that this package makes, for callers, logs or errors, has any part of a token in it.
package jwt

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns authenticator/jwt.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:         "authenticator/jwt",
		Version:      "1",
		Reads:        []string{state.Mesh},
		ConfigSchema: []byte(schema),
		Kind: sdk.AuthenticatorKind(func(config []byte) (sdk.Authenticator, error) {
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
    "issuers": {
      "type": "array", "description": "Whose tokens count.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["issuer", "audiences"],
        "properties": {
          "issuer": {"type": "string", "description": "The claim iss of its tokens."},
          "audiences": {"type": "array", "items": {"type": "string"}, "description": "The claim aud must have one of these."},
          "jwksUri": {"type": "string", "description": "Where its keys are; otherwise it is asked for them by OpenID Connect Discovery."},
          "jwks": {"type": "string", "description": "Its keys themselves, a JSON Web Key Set."},
          "jwksFile": {"type": "string", "description": "A file with its keys."}
        }
      }
    },
    "trustDomain": {"type": "string", "description": "The trust domain of identities; the mesh's where it is left out."},
    "caFile": {"type": "string", "description": "PEM file with roots that are trusted besides the system's."},
    "skew": {"type": "string", "default": "10s", "description": "How far the issuer's clock may be off."},
    "refresh": {"type": "string", "default": "20m", "description": "How old keys may become until they are fetched again."},
    "retry": {"type": "string", "default": "10s", "description": "How long at least between two fetches, also where a token has a key that is unknown."},
    "keep": {"type": "string", "default": "24h", "description": "How long keys count that can't be fetched again."},
    "timeout": {"type": "string", "default": "5s", "description": "How long a fetch may take."},
    "maxBytes": {"type": "integer", "minimum": 1, "default": 1048576, "description": "The largest answer that is taken."}
  }
}`
