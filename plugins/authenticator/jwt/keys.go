package jwt

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxKeys is how many keys an issuer may have.
	maxKeys = 64
	// Bounds of RSA keys, in bits: what is shorter can be broken, what is longer takes long to
	// check with. Source: RFC 7518, section 3.3; NIST SP 800-57.
	minRSA, maxRSA = 2048, 8192
)

// algorithms are those of signatures that somebody who has the public key can't make.
// Source: RFC 7518, section 3.1; RFC 8037.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// keys are those of an issuer that signatures can be checked with.
type keys []jose.JSONWebKey

var errNoKeys = errors.New("it has no key that signatures can be checked with (RSA of 2048 to 8192 bits, EC or Ed25519)")

// readKeys reads a key set. Keys of kinds that are of no use here are left out, as RFC 7517,
// section 5 has it.
func readKeys(text []byte) (keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("it is no key set: JSON with a list `keys`")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys; the limit is %d", len(set.Keys), maxKeys)
	}
	var all keys
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) == nil && k.IsPublic() && (k.Use == "" || k.Use == "sig") && fits(k) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return nil, errNoKeys
	}
	return all, nil
}

func fits(k jose.JSONWebKey) bool {
	if r, ok := k.Key.(*rsa.PublicKey); ok {
		return r.N.BitLen() >= minRSA && r.N.BitLen() <= maxRSA
	}
	return k.Valid()
}

// of returns the keys that a header names: those with its id, or all where it names none, as far as
// they are for its algorithm.
func (all keys) of(header jose.Header) (out keys) {
	for _, k := range all {
		if (header.KeyID == "" || k.KeyID == header.KeyID) && (k.Algorithm == "" || k.Algorithm == header.Algorithm) {
			out = append(out, k)
		}
	}
	return out
}
