package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// believed are the authorities of clients' certificates. One of another trust domain is in the
// pool, too, and could sign for any name: so it counts for its own domain alone.
type believed struct {
	pool *x509.CertPool
	// domainOf is Issuer's.
	domainOf func(uri string) (domain string, ok bool)
	// domains are the authorities (DER) of each trust domain, local those of domains without any.
	domains map[string]map[string]bool
	local   map[string]bool
}

func newBelieved(domainOf func(uri string) (domain string, ok bool)) *believed {
	return &believed{pool: x509.NewCertPool(), domainOf: domainOf, domains: map[string]map[string]bool{}, local: map[string]bool{}}
}

func (b *believed) add(a Authorities) error {
	if b.domains[a.Domain] == nil {
		b.domains[a.Domain] = map[string]bool{}
	}
	for _, der := range a.Certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("trust domain %s: %w", a.Domain, err)
		}
		b.pool.AddCert(c)
		b.domains[a.Domain][string(der)] = true
		if a.Local {
			b.local[string(der)] = true
		}
	}
	return nil
}

// vouch reports, as an error, that a client's certificate is of an authority that doesn't sign for
// the trust domains that it names. The chain to some authority is verified already.
func (b *believed) vouch(c tls.ConnectionState) error {
	if len(c.VerifiedChains) == 0 { // it showed none
		return nil
	}
	for _, u := range c.PeerCertificates[0].URIs {
		if domain, ok := b.domainOf(u.String()); ok && !b.signsFor(domain, c.VerifiedChains) {
			return fmt.Errorf("the certificate of %s is signed by no authority of its trust domain", u)
		}
	}
	return nil
}

func (b *believed) signsFor(domain string, chains [][]*x509.Certificate) bool {
	authorities, ok := b.domains[domain]
	if !ok {
		authorities = b.local
	}
	for _, chain := range chains {
		if authorities[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	return false
}
