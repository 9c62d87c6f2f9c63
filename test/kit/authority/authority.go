// Package authority issues certificates for workloads in tests, as files.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates for workloads.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	der         []byte
}

// New makes one with a root of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, // Java refuses issuers without a name
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.der, err = x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key); err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(a.der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Issue replaces the files of a folder (cert-chain.pem, key.pem, root-cert.pem) by those of an
// identity, a URI. All may read them.
func (a *Authority) Issue(t testing.TB, dir, identity string) {
	t.Helper()
	id, err := url.Parse(identity)
	if err != nil {
		t.Fatal(err)
	}
	a.issue(t, dir, &x509.Certificate{URIs: []*url.URL{id}})
}

// IssueLocal does so for a server, or its client, at 127.0.0.1.
func (a *Authority) IssueLocal(t testing.TB, dir string) {
	t.Helper()
	a.issue(t, dir, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// issue issues a certificate with the names of another.
func (a *Authority) issue(t testing.TB, dir string, of *x509.Certificate) {
	t.Helper()
	key := newKey(t)
	of.SerialNumber, of.NotBefore, of.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	of.KeyUsage, of.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, of, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, dir, map[string][]byte{
		"cert-chain.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"key.pem":        private(t, key),
		"root-cert.pem":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der}),
	})
}

func private(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// replace swaps all files at once, as Kubernetes does: the folder has links through ..data, which
// is moved.
func replace(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(next, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(next, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "..new")
	if err := os.Symlink(filepath.Base(next), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}
