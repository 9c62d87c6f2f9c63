// Package jwt is the built-in plugin authenticator/jwt: tokens of OpenID Connect issuers (RFC
// 7519), checked with the issuers' keys (RFC 7517).
//
// No text that this package makes, for callers, logs or errors, has any part of a token in it.
package jwt

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Plugin returns authenticator/jwt.
func Plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name: "authenticator/jwt", Version: "1", Reads: []string{state.Mesh},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Authenticator, error) { return New(c) }),
	}
}
