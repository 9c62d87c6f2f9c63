package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// MaxRequest is how many bytes a request may have: one with an RSA key of 8192 bits has a third.
const MaxRequest = 16 << 10

// ParseRequest reads a certificate signing request (PKCS #10 in PEM), and checks its signature.
// Keys that are too weak are refused, and those that take long to check with, before anything is
// checked with them.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxRequest {
		return nil, fmt.Errorf("it has %d bytes; %d are taken", len(text), MaxRequest)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil || block.Type != "CERTIFICATE REQUEST":
		return nil, errors.New("it is no certificate request in PEM")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is something behind the certificate request")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := strong(r.PublicKey); err != nil {
		return nil, err
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("its signature is wrong: %w", err)
	}
	return r, nil
}

// leastRSA and mostRSA are how many bits an RSA key must have and may have: one of 40,000 bits
// takes 0.3 s to check a signature with. mostExponent is that of the time, too, and 3 the least of
// RSA.
// Source: NIST SP 800-57 part 1, section 5.6.1; FIPS 186-5, section A.1.1, has 2^16 to 2^256.
const (
	leastRSA, mostRSA           = 2048, 8192
	leastExponent, mostExponent = 3, 1<<31 - 1
)

// strong refuses keys that nobody should use.
func strong(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch bits := k.N.BitLen(); {
		case bits < leastRSA:
			return fmt.Errorf("its RSA key has %d bits; it must have %d at least", bits, leastRSA)
		case bits > mostRSA:
			return fmt.Errorf("its RSA key has %d bits; it may have %d at most", bits, mostRSA)
		case k.N.Bit(0) == 0 || k.E%2 == 0 || k.E < leastExponent || k.E > mostExponent:
			return fmt.Errorf("its RSA key is none: modulus and exponent must be odd, the exponent from %d to %d", leastExponent, mostExponent)
		}
		return nil
	case *ecdsa.PublicKey:
		if bits := k.Params().BitSize; bits < elliptic.P256().Params().BitSize {
			return fmt.Errorf("its key is of a curve of %d bits; P-256 is the least", bits)
		}
		return nil
	}
	return errors.New("its key is neither RSA nor ECDSA")
}

// alternativeNames is the extension of RFC 5280, section 4.2.1.6.
var alternativeNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// Modest reports why a request that others sign may not go to them: it must ask for names of who
// asks, at least one, and for nothing else, because they may heed all that is in it.
func Modest(r *x509.CertificateRequest, uris []*url.URL, dns []string) error {
	for _, n := range r.Subject.Names {
		if text, ok := n.Value.(string); !ok || text != "" {
			return fmt.Errorf("its subject is %q; it must be empty", r.Subject)
		}
	}
	own := 0
	for _, u := range r.URIs {
		if !slices.ContainsFunc(uris, func(v *url.URL) bool { return v.String() == u.String() }) {
			return fmt.Errorf("it asks for the name %q, which the caller hasn't", u)
		}
		own++
	}
	for _, name := range r.DNSNames {
		if !slices.Contains(dns, name) {
			return fmt.Errorf("it asks for the name %q, which the caller hasn't", name)
		}
		own++
	}
	if own == 0 {
		return errors.New("it asks for no name: who signs takes names from the request, which needs the caller's SPIFFE ID as URI")
	}
	for i, e := range r.Extensions {
		var names []asn1.RawValue
		switch rest, err := asn1.Unmarshal(e.Value, &names); {
		case !e.Id.Equal(alternativeNames):
			return fmt.Errorf("it asks for the extension %s; the subject's alternative names are the only one that may be", e.Id)
		case i > 0 || err != nil || len(rest) > 0 || len(names) != own:
			return errors.New("it asks for names that are neither URIs nor names of hosts")
		}
	}
	return nil
}

// Fits reports why a chain in PEM that others made for a request is not what was asked for, or does
// not lead to one of the roots, in PEM. It returns the chain, the workload's certificate first,
// without roots.
func Fits(chain []byte, r *x509.CertificateRequest, roots []byte, now time.Time) ([]*x509.Certificate, error) {
	all, err := parseCertificates("the chain", chain)
	if err != nil {
		return nil, err
	}
	believed, err := parseCertificates("what the roots are read from", roots)
	if err != nil {
		return nil, err
	}
	leaf := all[0]
	key, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	names := func(urls []*url.URL) (texts []string) {
		for _, u := range urls {
			texts = append(texts, u.String())
		}
		slices.Sort(texts)
		return texts
	}
	switch {
	case !ok || !key.Equal(r.PublicKey):
		return nil, errors.New("the certificate is of another key")
	case leaf.IsCA:
		return nil, errors.New("the certificate is a CA's")
	case !slices.Equal(names(leaf.URIs), names(r.URIs)) || !subset(leaf.DNSNames, r.DNSNames) || !subset(r.DNSNames, leaf.DNSNames):
		return nil, fmt.Errorf("the certificate has the names %q, and %q were asked for",
			append(names(leaf.URIs), leaf.DNSNames...), append(names(r.URIs), r.DNSNames...))
	}
	pool, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range believed {
		pool.AddCert(c)
	}
	out := []*x509.Certificate{leaf}
	for _, c := range all[1:] {
		if !bytes.Equal(c.RawSubject, c.RawIssuer) {
			out = append(out, c)
			between.AddCert(c)
		}
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, CurrentTime: now.Add(Skew / 2),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil { // each of the usages
		_, err = leaf.Verify(x509.VerifyOptions{
			Roots: pool, Intermediates: between, CurrentTime: now.Add(Skew / 2),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate does not lead to a root that is known: %w", err)
	}
	return out, nil
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(of, s) })
}
