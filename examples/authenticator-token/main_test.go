package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// config knows the token `sesame`.
const config = `{"d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272": "spiffe://cluster.local/ns/cave/sa/ali"}`

func bearer(token string) sdk.Credentials {
	return sdk.Credentials{Headers: map[string]string{"authorization": "Bearer " + token}}
}

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{
		Kind: "authenticator", Config: config, BadConfigs: []any{"[1]", ""}, Credentials: []sdk.Credentials{bearer("sesame")},
	}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

func TestToken(t *testing.T) {
	h := plugintest.Start(t, plugin(), config)
	if got := h.Authenticate(bearer("sesame")); !slices.Equal(got.Identities, []string{"spiffe://cluster.local/ns/cave/sa/ali"}) {
		t.Errorf("%+v", got)
	}
	if got := h.Authenticate(bearer("hunter2")); !strings.Contains(got.Refusal, "unknown") {
		t.Errorf("%+v", got)
	}
}
