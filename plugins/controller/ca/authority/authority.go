// Package authority signs certificates of workloads. It is pure: keys, requests and the time go in,
// certificates come out; it reads no file and keeps nothing.
package authority

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"
)

// Skew is how far clocks may be apart: certificates begin by so much earlier.
const Skew = 2 * time.Minute

// Authority signs with one key. It is immutable.
type Authority struct {
	// Certificate is the one that signs, and Key its key.
	Certificate *x509.Certificate
	Key         crypto.Signer
	// Chain leads from Certificate to a root, which isn't in it; Certificate comes first, unless it
	// is a root itself.
	Chain []*x509.Certificate
	// Roots are what whoever checks certificates is to believe, the newest first.
	Roots []*x509.Certificate
}

// Request is what is to be signed.
type Request struct {
	// Key is the public key that the certificate is for.
	Key crypto.PublicKey
	// URIs and DNS are the certificate's names.
	URIs []*url.URL
	DNS  []string
	// TTL is how long it counts from now on; it ends with the authority's own certificate at the
	// latest.
	TTL time.Duration
}

// Sign makes a certificate, in DER, of a workload, which shows it as a client and as a server.
// Source: SPIFFE X.509-SVID, section 4.
func (a *Authority) Sign(r Request, now time.Time) ([]byte, error) {
	end := now.Add(r.TTL)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	if !end.After(now) {
		return nil, fmt.Errorf("the authority's certificate has ended on %s", a.Certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	serial, err := serial()
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-Skew), NotAfter: end, URIs: r.URIs, DNSNames: r.DNS,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, a.Certificate, r.Key, a.Key)
}

func serial() (*big.Int, error) { return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)) }

// Root makes a root that signs itself, of an organization, with a key that there is already or, if
// it is nil, a new one of RSA of so many bits.
func Root(organization string, key crypto.Signer, bits int, ttl time.Duration, now time.Time) (*Authority, error) {
	if key == nil {
		made, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			return nil, err
		}
		key = made
	}
	serial, err := serial()
	if err != nil {
		return nil, err
	}
	subject := pkix.Name{Organization: []string{organization}}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-Skew), NotAfter: now.Add(ttl),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{Certificate: c, Key: key, Roots: []*x509.Certificate{c}}, nil
}

// Renewed makes a root anew, with the same key and name, so that certificates that the old one
// signed still count. Whoever believes the old one believes the new one as well: it stays among the
// roots until it ends.
func (a *Authority) Renewed(ttl time.Duration, now time.Time) (*Authority, error) {
	organization := ""
	if o := a.Certificate.Subject.Organization; len(o) > 0 {
		organization = o[0]
	}
	next, err := Root(organization, a.Key, 0, ttl, now)
	if err != nil {
		return nil, err
	}
	for _, r := range a.Roots {
		if r.NotAfter.After(now) {
			next.Roots = append(next.Roots, r)
		}
	}
	return next, nil
}

// IsRoot reports whether the authority is a root.
func (a *Authority) IsRoot() bool {
	return len(a.Chain) == 0
}

// Due returns when a root is to be made anew: when less of its life is left than so many percent.
func (a *Authority) Due(percent int) time.Time {
	life := a.Certificate.NotAfter.Sub(a.Certificate.NotBefore)
	return a.Certificate.NotAfter.Add(-life * time.Duration(percent) / 100)
}

// Bundle returns the roots in PEM.
func (a *Authority) Bundle() []string {
	var all []string
	for _, r := range a.Roots {
		all = append(all, string(EncodeCertificate(r.Raw)))
	}
	return all
}

// Same reports whether two authorities sign and are believed alike.
func (a *Authority) Same(b *Authority) bool {
	equal := func(x, y *x509.Certificate) bool { return x.Equal(y) }
	return a != nil && b != nil && a.Certificate.Equal(b.Certificate) &&
		slices.EqualFunc(a.Chain, b.Chain, equal) && slices.EqualFunc(a.Roots, b.Roots, equal)
}
