package token

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 4)
	texts := map[string]string{}
	for _, b := range blocks {
		texts[b.Name()] = b.Text
	}
	t.Chdir(t.TempDir())
	save := func(name string) {
		t.Helper()
		if err := os.WriteFile("tokens.yaml", []byte(texts[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("tokens.yaml")
	h := plugintest.Start(t, Plugin(), config)
	check := func() {
		t.Helper()
		for token, want := range map[string][]string{secret: {web}, other: {cart, "spiffe://old.example/ns/shop/sa/cart"}} {
			if got := h.Authenticate(header(token)); !slices.Equal(got.Identities, want) {
				t.Errorf("%s: %v", token, got)
			}
		}
	}
	check()
	save("broken.yaml")
	eventually(t, "the mistake is logged", func() bool { return logged(h, strings.TrimSpace(texts["log"])) })
	check()
}
