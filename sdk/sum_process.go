//go:build !wasip1

package sdk

import "crypto/sha256"

// digest computes the hashes of bodies.
type digest struct{}

func (digest) of(b []byte) hash {
	all := sha256.Sum256(b)
	return hash(all[:16])
}
