// Package jwks is the built-in plugin config/jwks: it fetches the key sets (RFC 7517) that rules
// for tokens name by a URI, or that their issuers publish (OpenID Connect Discovery 1.0, section
// 4).
//
// wants.go says what rows ask for, fetch.go gets one set, package polling keeps it fresh.
package jwks

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Table of key sets: the key of a row is the rule's jwksUri, or its issuer where it names none; its
// payload is the set as text.
const Table = "jwks"

// Plugin returns config/jwks.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/jwks",
		Version:   "1",
		Reads:     []string{kinds.RequestAuthentication},
		Publishes: []string{Table},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) { return New(c) }),
	}
}
