package pemkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

func encoded(t *testing.T, kind string, key any, encode func(any) ([]byte, error)) []byte {
	t.Helper()
	der, err := encode(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestParse(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1 := func(k any) ([]byte, error) { return x509.MarshalECPrivateKey(k.(*ecdsa.PrivateKey)) }
	pkcs1 := func(k any) ([]byte, error) { return x509.MarshalPKCS1PrivateKey(k.(*rsa.PrivateKey)), nil }
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	for name, c := range map[string]struct {
		text []byte
		want crypto.Signer
		why  string
	}{
		"PKCS #1":      {encoded(t, "RSA PRIVATE KEY", rs, pkcs1), rs, ""},
		"SEC 1":        {append(parameters, encoded(t, "EC PRIVATE KEY", ec, sec1)...), ec, ""},
		"PKCS #8":      {encoded(t, "PRIVATE KEY", ec, x509.MarshalPKCS8PrivateKey), ec, ""},
		"PKCS #8, RSA": {encoded(t, "PRIVATE KEY", rs, x509.MarshalPKCS8PrivateKey), rs, ""},
		"Ed25519":      {encoded(t, "PRIVATE KEY", ed, x509.MarshalPKCS8PrivateKey), ed, ""},
		"nothing":      {nil, nil, "tls.key has no private key in PEM"},
		"parameters":   {parameters, nil, "tls.key has no private key in PEM"},
		"encrypted":    {encoded(t, "ENCRYPTED PRIVATE KEY", rs, pkcs1), nil, "tls.key is encrypted"},
		"another kind": {encoded(t, "EC PRIVATE KEY", rs, pkcs1), nil, "tls.key has a key that can't be read"},
		"half":         {bytes.Repeat([]byte("-----BEGIN PRIVATE KEY-----\n"), 2), nil, "tls.key has no private key in PEM"},
	} {
		got, err := Parse("tls.key", c.text)
		if c.why != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.why) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !got.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(c.want.Public()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
