package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

// signedRequest is what a request is in DER. Source: RFC 2986, section 4.2.
type signedRequest struct {
	Info      asn1.RawValue
	Algorithm asn1.RawValue
	Signature asn1.BitString
}

// request is one of a key whose signature is right, in PEM.
func request(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// forged is a request of an RSA key that nobody has, with a signature that was never made: whoever
// verifies it finds that out after a while, whoever looks at the key doesn't get so far.
func forged(t *testing.T, n *big.Int, e int) []byte {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: e})
	if err != nil {
		t.Fatal(err)
	}
	info, err := asn1.Marshal(struct {
		Version    int
		Subject    asn1.RawValue
		Key        asn1.RawValue
		Attributes asn1.RawValue
	}{0, asn1.RawValue{FullBytes: []byte{0x30, 0}}, asn1.RawValue{FullBytes: public}, asn1.RawValue{FullBytes: []byte{0xa0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	sha256WithRSA := []byte{0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00}
	size := (n.BitLen() + 7) / 8
	der, err := asn1.Marshal(signedRequest{
		asn1.RawValue{FullBytes: info}, asn1.RawValue{FullBytes: sha256WithRSA}, asn1.BitString{Bytes: make([]byte, size), BitLength: 8 * size},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// modulus is an odd number of so many bits, and what is added to it.
func modulus(bits int, more int64) *big.Int {
	return new(big.Int).Add(new(big.Int).SetBit(new(big.Int), bits-1, 1), big.NewInt(1+more))
}

// The key is judged before anything is checked with it: a request with a wrong signature and a key
// that may not be is refused for the key.
func TestKeysAreJudgedFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		text []byte
		want string
	}{
		{"40,000 bits", forged(t, modulus(40_000, 0), 65537), "has 40000 bits; it may have 8192 at most"},
		{"8193 bits", forged(t, modulus(8193, 0), 65537), "has 8193 bits; it may have 8192 at most"},
		{"2047 bits", forged(t, modulus(2047, 0), 65537), "it must have 2048 at least"},
		{"an even modulus", forged(t, modulus(2048, 1), 65537), "must be odd"},
		{"an even exponent", forged(t, modulus(2048, 0), 65536), "must be odd"},
		{"exponent 1", forged(t, modulus(2048, 0), 1), "from 3 to"},
		{"a large exponent", forged(t, modulus(2048, 0), 1<<31+1), "from 3 to"},
		{"8192 bits", forged(t, modulus(8192, 0), 65537), "its signature is wrong"},
		{"exponent 3", forged(t, modulus(2048, 0), 3), "its signature is wrong"},
		{"too much", []byte(strings.Repeat("x", MaxRequest+1)), "16384 are taken"},
	} {
		if _, err := ParseRequest(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Keys that workloads have are taken.
func TestKeysThatAreTaken(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]crypto.Signer{"RSA of 2048 bits": small}
	for _, c := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		if keys[c.Params().Name], err = ecdsa.GenerateKey(c, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	for name, key := range keys {
		if _, err := ParseRequest(request(t, key)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRequest(request(t, other)); err == nil || !strings.Contains(err.Error(), "neither RSA nor ECDSA") {
		t.Errorf("Ed25519: %v", err)
	}
}
