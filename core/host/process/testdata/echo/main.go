// Command echo is an authenticator that says back what it was told.
package main

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk"
)

func main() {
	sdk.Serve(sdk.Plugin{Name: "echo", Kind: sdk.AuthenticatorKind(func([]byte) (sdk.Authenticator, error) {
		return sdk.AuthenticatorFunc(func(_ context.Context, c sdk.Credentials) ([]string, error) {
			return []string{c.RemoteAddress}, nil
		}), nil
	})})
}
