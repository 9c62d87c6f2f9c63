// Package token is the built-in plugin authenticator/token: bearer tokens from a file, which is
// followed while the plugin runs.
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
		New:     sdk.WithConfig(defaults(), func(c Config) (sdk.Authenticator, error) { return New(c) }),
	}
}
