package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// certificate returns one with URIs.
func certificate(t *testing.T, uris ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for _, s := range uris {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestReadme: the example's plugin knows the example's caller, and nobody else.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	_, web, _ := strings.Cut(strings.TrimSpace(blocks[1].Text), "URI:")
	h := plugintest.Start(t, Plugin(), config)
	for _, c := range []struct {
		name    string
		shown   [][]byte
		ids     []string
		refused string
	}{
		{"the example", [][]byte{certificate(t, web)}, []string{web}, ""},
		{
			"the leaf alone counts",
			[][]byte{certificate(t, web, "spiffe://old/ns/shop/sa/web"), certificate(t, "spiffe://ca")},
			[]string{web, "spiffe://old/ns/shop/sa/web"}, "",
		},
		{"no certificate", nil, nil, "no certificate was shown"},
		{"no URI", [][]byte{certificate(t)}, nil, "no URI among the subject's alternative names"},
		{"garbage", [][]byte{[]byte("x")}, nil, "can't be read"},
	} {
		got := h.Authenticate(sdk.Credentials{Certificates: c.shown})
		if !slices.Equal(got.Identities, c.ids) || (got.Refusal == "") != (c.refused == "") || !strings.Contains(got.Refusal, c.refused) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
