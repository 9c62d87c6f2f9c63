package secrets

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ocsp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/pemkey"
)

// minRSA is how many bits an RSA key must have for Envoy.
// Source: Envoy, extensions.transport_sockets.tls.v3.TlsCertificate.
const minRSA = 2048

// Pair are the values of an object that are a certificate with its key, and what goes with them;
// nil where there is none.
type Pair struct{ Chain, Key, Staple []byte }

// Trust are the values of an object that say what to trust. Revoked are lists of revoked
// certificates; nil where there is none.
type Trust struct{ Roots, Revoked []byte }

// Certificate returns an object's certificate and key, once they are such as Envoy takes: those of
// a generic Secret before those of one of type kubernetes.io/tls. Errors, as all of this package,
// name values and have nothing of them.
func Certificate(data map[string][]byte) (Pair, error) {
	chain, key, revoked := GenericCertificate, GenericKey, GenericRevoked
	if len(data[chain]) == 0 || len(data[key]) == 0 {
		chain, key, revoked = Certificates, Key, Revoked
	}
	if len(data[chain]) == 0 || len(data[key]) == 0 {
		return Pair{}, fmt.Errorf("it has no %s and %s, nor %s and %s", Certificates, Key, GenericCertificate, GenericKey)
	}
	if err := match(chain, data[chain], key, data[key]); err != nil {
		return Pair{}, err
	}
	if err := checkRevoked(revoked, data[revoked]); err != nil {
		return Pair{}, err
	}
	out := Pair{Chain: data[chain], Key: data[key]}
	if staple := data[Staple]; len(staple) > 0 && chain == Certificates {
		if _, err := ocsp.ParseResponse(staple, nil); err != nil {
			return Pair{}, fmt.Errorf("%s is no answer of an OCSP responder in DER", Staple)
		}
		out.Staple = staple
	}
	return out, nil
}

// Trusted returns what an object says is to be trusted, once it is such as Envoy takes.
func Trusted(data map[string][]byte) (Trust, error) {
	roots, revoked := GenericRoots, GenericRevoked
	if len(data[roots]) == 0 {
		roots, revoked = Roots, Revoked
	}
	if len(data[roots]) == 0 {
		return Trust{}, fmt.Errorf("it has no %s, nor %s", Roots, GenericRoots)
	}
	if _, err := certificates(roots, data[roots]); err != nil {
		return Trust{}, err
	}
	if err := checkRevoked(revoked, data[revoked]); err != nil {
		return Trust{}, err
	}
	return Trust{Roots: data[roots], Revoked: data[revoked]}, nil
}

// Check says what is wrong with an object's values, of those that it has.
func Check(data map[string][]byte) error {
	size := 0
	for _, v := range data {
		size += len(v)
	}
	has := func(name string) bool { return len(data[name]) > 0 }
	switch {
	case size > maxBytes:
		return fmt.Errorf("%w: it has %d bytes of certificates and keys, and may have %d", ErrTooLarge, size, maxBytes)
	case has(GenericCertificate), has(GenericKey), has(Certificates), has(Key):
		if _, err := Certificate(data); err != nil {
			return err
		}
	}
	if has(GenericRoots) || has(Roots) {
		_, err := Trusted(data)
		return err
	}
	return nil
}

// ErrTooLarge is wrapped by Check's error for an object of which no row can be made.
var ErrTooLarge = errors.New("too large")

// maxBytes is how large the wanted values of an object may be together: its row must fit into a
// message of 1 MiB, in which values are in base64.
const maxBytes = 768 << 10

// certificates reads a value with certificates in PEM, at least one.
func certificates(value string, text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s has a certificate, its number %d, that can't be read", value, len(all)+1)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM", value)
	}
	return all, nil
}

// match checks that a key is the one that a chain's first certificate is for, and that Envoy takes
// both.
func match(chain string, certs []byte, key string, private []byte) error {
	all, err := certificates(chain, certs)
	if err != nil {
		return err
	}
	signer, err := pemkey.Parse(key, private)
	if err != nil {
		return err
	}
	var same bool
	switch public := all[0].PublicKey.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() < minRSA {
			return fmt.Errorf("%s is for an RSA key of %d bits; it needs %d", chain, public.N.BitLen(), minRSA)
		}
		same = public.Equal(signer.Public())
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P224() {
			return fmt.Errorf("%s is for an EC key of the curve P-224; use P-256, P-384 or P-521", chain)
		}
		same = public.Equal(signer.Public())
	default:
		return fmt.Errorf("%s is for a key of type %s; use RSA or EC", chain, all[0].PublicKeyAlgorithm)
	}
	if !same {
		return fmt.Errorf("%s is not the key of the first certificate in %s", key, chain)
	}
	return nil
}

// checkRevoked checks a value with lists of revoked certificates in PEM; there may be none.
func checkRevoked(value string, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseRevocationList(block.Bytes); block.Type != "X509 CRL" || err != nil {
			return fmt.Errorf("%s has something that is no list of revoked certificates (X509 CRL)", value)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s has no list of revoked certificates (X509 CRL) in PEM", value)
	}
	return nil
}
