// Package pemkey reads private keys in PEM.
package pemkey

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Parse returns the first private key of a text: of PKCS #1 (RFC 8017), of SEC 1 (RFC 5915) or of
// PKCS #8 (RFC 5958), as openssl, cert-manager and istiod write them. Other blocks, such as the
// parameters of a curve, may come before. Errors begin with what, the name of the text for people,
// and have nothing of the key.
func Parse(what string, text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, fmt.Errorf("%s is encrypted; it must not be", what)
		default:
			continue
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s has a key that can't be read", what)
		}
		return signer, nil
	}
	return nil, fmt.Errorf("%s has no private key in PEM (PKCS #1, PKCS #8 or SEC 1)", what)
}
