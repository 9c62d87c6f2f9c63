// Command authenticator-token knows callers by bearer tokens. Its config has an identity for the SHA-256, in hex, of each: no token stands in it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/coxswain-mesh/coxswain/sdk"
)

type identities map[string]string

func main() { sdk.Serve(sdk.Plugin{Name: "token", Version: "1", Kind: sdk.AuthenticatorKind(open)}) }

func open(config []byte) (sdk.Authenticator, error) {
	known := identities{}
	return known, json.Unmarshal(config, &known)
}

func (known identities) Authenticate(_ context.Context, c sdk.Credentials) ([]string, error) {
	if id := known[fmt.Sprintf("%x", sha256.Sum256([]byte(c.Bearer())))]; id != "" {
		return []string{id}, nil
	}
	return nil, fmt.Errorf("the token is unknown")
}
