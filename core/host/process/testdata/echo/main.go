// Command echo is an authenticator that says back what it was told.
package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() {
	sdk.Serve(sdk.AuthenticatorPlugin{Name: "echo", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
		return sdk.AuthenticatorFunc(func(_ context.Context, c sdk.Credentials) ([]string, error) {
			return []string{c.RemoteAddress}, nil
		}), nil
	})})
}
