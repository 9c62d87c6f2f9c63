package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/pemkey"
)

// Files are an authority as text, in PEM.
type Files struct {
	// Certificate is the one that signs, Key its key. Chain leads to the root; empty: Certificate
	// is signed by the root, or is it. Roots are what is believed.
	Certificate, Key, Chain, Roots []byte
}

// Parse reads an authority, and checks that its parts belong together and that it may sign now.
// Errors name the part; none has anything of the key.
func Parse(f Files, now time.Time) (*Authority, error) {
	certificates, err := parseCertificates("the certificate", f.Certificate)
	if err != nil {
		return nil, err
	}
	a := &Authority{Certificate: certificates[0]}
	if a.Key, err = parseKey(f.Key); err != nil {
		return nil, err
	}
	if public, ok := a.Key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(a.Certificate.PublicKey) {
		return nil, errors.New("the key is not that of the certificate")
	}
	if a.Roots, err = parseCertificates("the root certificate", f.Roots); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(f.Chain)) > 0 {
		if a.Chain, err = parseCertificates("the chain", f.Chain); err != nil {
			return nil, err
		}
	}
	if err := a.arrange(); err != nil {
		return nil, err
	}
	return a, a.check(now)
}

// arrange makes the chain begin with what signs, and leaves roots out of it.
func (a *Authority) arrange() error {
	var chain []*x509.Certificate
	for _, c := range append([]*x509.Certificate{a.Certificate}, a.Chain...) {
		root := bytes.Equal(c.RawSubject, c.RawIssuer)
		if root || len(chain) > 0 && chain[len(chain)-1].Equal(c) {
			continue
		}
		chain = append(chain, c)
	}
	if len(chain) > 0 && !chain[0].Equal(a.Certificate) {
		return errors.New("the chain is that of another certificate")
	}
	a.Chain = chain
	return nil
}

// check reports why the authority can't sign what others believe.
func (a *Authority) check(now time.Time) error {
	switch c := a.Certificate; {
	case !c.IsCA:
		return errors.New("the certificate is not a CA's (basic constraints)")
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate may not sign others (key usage)")
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate has ended on %s", c.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.NotBefore.Add(-Skew)):
		return fmt.Errorf("the certificate begins on %s", c.NotBefore.UTC().Format(time.RFC3339))
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, r := range a.Roots {
		roots.AddCert(r)
	}
	for _, c := range a.Chain {
		between.AddCert(c)
	}
	_, err := a.Certificate.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now.Add(Skew), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("the certificate does not lead to the root: %w", err)
	}
	return nil
}

// parseCertificates reads one or more.
func parseCertificates(what string, text []byte) (all []*x509.Certificate, err error) {
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s has something else than certificates in PEM", what)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", what)
	}
	return all, nil
}

// parseKey reads a key such as signs certificates of workloads.
func parseKey(text []byte) (crypto.Signer, error) {
	key, err := pemkey.Parse("the text of the key", text)
	if err != nil {
		return nil, err
	}
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey:
		return key, nil
	}
	return nil, errors.New("the key is neither RSA nor ECDSA")
}

// Encode returns the authority as text.
func (a *Authority) Encode() (f Files, err error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.Key)
	if err != nil {
		return f, err
	}
	f.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	if k, ok := a.Key.(*rsa.PrivateKey); ok { // as istiod writes it
		f.Key = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
	}
	f.Certificate = EncodeCertificate(a.Certificate.Raw)
	for _, c := range a.Chain {
		f.Chain = append(f.Chain, EncodeCertificate(c.Raw)...)
	}
	for _, r := range a.Roots {
		f.Roots = append(f.Roots, EncodeCertificate(r.Raw)...)
	}
	return f, nil
}

// EncodeCertificate returns a certificate in DER as PEM.
func EncodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
