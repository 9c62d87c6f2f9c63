// Package bundle has the table of trust bundles: which authorities sign for which trust domain.
// Whoever signs publishes its own; the core believes clients by them, and generators hand them out.
package bundle

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// Table has rows for trust domains, several for one if it has authorities of several sources: a
// Bundle as JSON.
const Table = "trustbundles"

// Stopped is the kind of a fault, in the table of those, that says why nothing is signed.
const Stopped = "CertificateAuthority"

// Bundle is the payload of a row. It has nothing secret.
type Bundle struct {
	// TrustDomain is the one whose workloads the authorities sign for.
	TrustDomain string `json:"trustDomain"`
	// Local: they sign in this mesh, and are believed for trust domains without a bundle, too, such
	// as those of other meshes that have the same root.
	Local bool `json:"local,omitempty"`
	// Certificates are the authorities, a certificate in PEM each, the newest first.
	Certificates []string `json:"certificates"`
	// Lists are certificate revocation lists of theirs, one in PEM each.
	Lists []string `json:"lists,omitempty"`
}

// Parse reads a payload.
func Parse(payload []byte) (b Bundle, err error) {
	if err := json.Unmarshal(payload, &b); err != nil {
		return b, fmt.Errorf("a trust bundle: %w", err)
	}
	return b, nil
}

// Payload is the bundle as a row has it.
func (b Bundle) Payload() ([]byte, error) { return json.Marshal(b) }

// DER returns the certificates in DER.
func (b Bundle) DER() ([][]byte, error) { return DER(b.Certificates) }

// Revocations returns the revocation lists in DER.
func (b Bundle) Revocations() ([][]byte, error) {
	return blocks("X509 CRL", "revocation lists", b.Lists)
}

// DER reads certificates in PEM, of which each text may have several.
func DER(texts []string) ([][]byte, error) { return blocks("CERTIFICATE", "certificates", texts) }

func blocks(kind, words string, texts []string) (all [][]byte, err error) {
	for _, text := range texts {
		rest := []byte(text)
		for len(bytes.TrimSpace(rest)) > 0 {
			block, more := pem.Decode(rest)
			if block == nil || block.Type != kind {
				return nil, errors.New("what should be " + words + " in PEM is something else")
			}
			all, rest = append(all, block.Bytes), more
		}
	}
	return all, nil
}
