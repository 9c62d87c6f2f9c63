package usable

import (
	"crypto/ecdh"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// key is one of a set, as its members say (RFC 7517, section 4).
type key map[string]*structpb.Value

// text is a member that is to be text. has: it is there and is text.
func (k key) text(name string) (text string, has bool) {
	v, ok := k[name].GetKind().(*structpb.Value_StringValue)
	if !ok {
		return "", false
	}
	return v.StringValue, true
}

// bytes is a member in base64url, with padding or without; nil where it is something else.
func (k key) bytes(name string) []byte {
	text, _ := k.text(name)
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return b
}

func (k key) usable() bool {
	kind, _ := k.text("kty")
	alg, _ := k.text("alg")
	switch kind {
	case "RSA":
		return (alg == "" || strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")) && k.rsa()
	case "EC":
		return k.ec(alg)
	case "OKP":
		curve, _ := k.text("crv")
		return (alg == "" || alg == "EdDSA") && curve == "Ed25519" && len(k.bytes("x")) == 32
	case "oct":
		return (alg == "" || slices.Contains([]string{"HS256", "HS384", "HS512"}, alg)) && len(k.bytes("k")) > 0
	}
	return false
}

// Bounds of RSA keys, in bits, and their exponents: BoringSSL's.
const leastRSA, mostRSA = 512, 8192

var exponents = []string{"3", "65537"}

// rsa reports whether n and e are a key. Source: RFC 7518, section 6.3.1.
func (k key) rsa() bool {
	n, e := new(big.Int).SetBytes(k.bytes("n")), new(big.Int).SetBytes(k.bytes("e"))
	return n.BitLen() >= leastRSA && n.BitLen() <= mostRSA && n.Bit(0) == 1 && slices.Contains(exponents, e.String())
}

// curves are those of keys of the kind EC, with the algorithm of each.
// Source: RFC 7518, sections 3.4 and 6.2.1.1.
var curves = []struct {
	name, alg string
	curve     ecdh.Curve
	size      int // bytes of a coordinate
}{
	{"P-256", "ES256", ecdh.P256(), 32},
	{"P-384", "ES384", ecdh.P384(), 48},
	{"P-521", "ES512", ecdh.P521(), 66},
}

// ec reports whether x and y are a point of the curve that crv or alg names, P-256 where none does.
func (k key) ec(alg string) bool {
	name, has := k.text("crv")
	if k["crv"] != nil && !has {
		return false
	}
	if name == "" && alg == "" {
		name = "P-256"
	}
	for _, c := range curves {
		if name != c.name && name != "" || alg != c.alg && alg != "" {
			continue
		}
		x, y := new(big.Int).SetBytes(k.bytes("x")), new(big.Int).SetBytes(k.bytes("y"))
		if max(x.BitLen(), y.BitLen()) > 8*c.size {
			return false
		}
		point := append([]byte{4}, x.FillBytes(make([]byte, c.size))...)
		_, err := c.curve.NewPublicKey(append(point, y.FillBytes(make([]byte, c.size))...))
		return err == nil
	}
	return false
}

// certificates reports why a set that has no keys is none of certificates.
func certificates(byID map[string]*structpb.Value) error {
	const begin, end = "-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n"
	if len(byID) == 0 {
		return errors.New("it has no list `keys`")
	}
	for id := range byID {
		text, _ := key(byID).text(id)
		if id == "" || !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) {
			return errors.New("it has no list `keys`")
		}
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return errors.New("a certificate is no PEM")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if _, ok := c.PublicKey.(*rsa.PublicKey); !ok {
			return errors.New("a certificate's key is not RSA")
		}
	}
	return nil
}
