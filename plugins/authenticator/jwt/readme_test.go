package jwt

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// TestReadme: the example's key is that of RFC 8037, appendix A.1, whose private half is known; a
// token of it is the example's identity.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("ci.json", []byte(blocks[1].Text), 0o600); err != nil {
		t.Fatal(err)
	}
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	if got := hex.EncodeToString(key.Public().(ed25519.PublicKey)); !strings.HasPrefix(got, "d75a98") {
		t.Fatal(got)
	}
	h := plugintest.Start(t, Plugin(), config)
	h.Update("mesh", nil)
	accepts(t, "the example", h, signer{"1", jose.EdDSA, key}.token(t, claims("https://ci.example")), strings.TrimSpace(blocks[2].Text))
}
