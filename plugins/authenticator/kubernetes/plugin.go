// Package kubernetes is the built-in plugin authenticator/kubernetes: tokens of service accounts,
// which the API server of the caller's cluster checks (TokenReview, authentication.k8s.io/v1).
//
// No text that this package makes, for callers, logs or errors, has any part of a token in it.
package kubernetes

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// clusters is the table of other clusters, which registry/clusters publishes.
const clusters = "clusters"

// Plugin returns authenticator/kubernetes.
func Plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name: "authenticator/kubernetes", Version: "1", Reads: []string{state.Mesh, clusters},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Authenticator, error) { return New(c) }),
	}
}
