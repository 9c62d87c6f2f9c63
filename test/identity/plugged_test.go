package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// signer is a CA that tests plug in.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// chain leads from the certificate to one of the roots, which aren't in it. All in PEM.
	chain, roots []byte
}

// made makes a CA that another one signs; nil: itself.
func made(t *testing.T, name string, by *signer) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{Organization: []string{"acme"}, CommonName: name + number.String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true,
	}
	s := &signer{key: key}
	parent, signs := template, key
	if by != nil {
		parent, signs, s.roots = by.certificate, by.key, by.roots
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signs)
	if err != nil {
		t.Fatal(err)
	}
	if s.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if by == nil {
		s.roots = s.text()
	} else {
		s.chain = s.text()
	}
	return s
}

func newRoot(t *testing.T) *signer { t.Helper(); return made(t, "root ", nil) }

func below(t *testing.T, by *signer) *signer { t.Helper(); return made(t, "intermediate ", by) }

// text is the certificate in PEM.
func (s *signer) text() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
}

// withRoots believes another root as well.
func withRoots(s *signer, other *signer) *signer {
	both := *s
	both.roots = append(append([]byte{}, s.roots...), other.roots...)
	return &both
}

// plug puts a CA into the folder `cacerts`, in place of the one before.
func plug(t *testing.T, dir string, s *signer) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	next, err := os.MkdirTemp(dir, ".made")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"ca-cert.pem": s.text(), "ca-key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"cert-chain.pem": s.chain, "root-cert.pem": s.roots,
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(next, name), text, 0o600))
	}
	folder := filepath.Join(dir, "cacerts")
	if err := errors.Join(err, os.RemoveAll(folder), os.Rename(next, folder)); err != nil {
		t.Fatal(err)
	}
}
