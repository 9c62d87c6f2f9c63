// Command authenticator-token knows callers by bearer tokens. Its config has an identity for the
// SHA-256, in hex, of each: no token stands in it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/coxswain-mesh/coxswain/sdk"
)

type identities map[string]string

// Check refuses a config without which nobody could come in.
func (known identities) Check() error {
	if len(known) == 0 {
		return errors.New("it has no token's hash")
	}
	return nil
}

func main() { sdk.Serve(plugin()) }

func plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name: "token", Version: "1",
		New: sdk.WithConfig(nil, func(known identities) (sdk.Authenticator, error) { return known, nil }),
	}
}

func (known identities) Authenticate(_ context.Context, c sdk.Credentials) ([]string, error) {
	sum := sha256.Sum256([]byte(c.Bearer()))
	if id := known[hex.EncodeToString(sum[:])]; id != "" {
		return []string{id}, nil
	}
	return nil, errors.New("the token is unknown")
}
