package server

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// revocations are the certificates that count no more, by what rows of plugins say.
type revocations struct {
	rows func() []*pb.Row
	read func(payload []byte) ([][]byte, error)

	mu sync.Mutex
	// of are the payloads that lists were made of.
	of    [][]byte
	lists []list
}

// list is a certificate revocation list. Whoever publishes it has checked its signature.
type list struct {
	issuer, key []byte
	// revoked is when, by serial numbers.
	revoked map[string]time.Time
}

// check returns the first of the chains in which nothing is revoked; if there is none, why says
// what is.
func (r *revocations) check(chains [][]*x509.Certificate) (chain []*x509.Certificate, why string) {
	if r == nil {
		return chains[0], ""
	}
	lists := r.now()
	for _, chain := range chains {
		found := ""
		for i, c := range chain {
			if at, yes := revoked(lists, c); yes && found == "" {
				found = fmt.Sprintf("the client's certificate %X of %q was revoked on %s: it needs a new one",
					c.SerialNumber, c.Issuer, at.UTC().Format(time.RFC3339))
				if i > 0 {
					found = fmt.Sprintf("the client's certificate is signed by %q, whose certificate %X was revoked on %s: it needs one of another authority",
						c.Subject, c.SerialNumber, at.UTC().Format(time.RFC3339))
				}
			}
		}
		if found == "" {
			return chain, ""
		}
		why = found
	}
	return nil, why
}

// revoked reports whether a certificate is, and since when.
// Source: RFC 5280, section 5.
func revoked(lists []list, c *x509.Certificate) (at time.Time, yes bool) {
	for _, l := range lists {
		if !bytes.Equal(l.issuer, c.RawIssuer) || len(l.key) > 0 && len(c.AuthorityKeyId) > 0 && !bytes.Equal(l.key, c.AuthorityKeyId) {
			continue
		}
		if at, yes := l.revoked[c.SerialNumber.String()]; yes {
			return at, true
		}
	}
	return at, false
}

// now returns the lists of the rows that there are. A row that can't be read has none: its
// publisher's guard is elsewhere.
func (r *revocations) now() []list {
	r.mu.Lock()
	defer r.mu.Unlock()
	var payloads [][]byte
	for _, row := range r.rows() {
		payloads = append(payloads, row.Payload)
	}
	if slices.EqualFunc(payloads, r.of, func(a, b []byte) bool { return bytes.Equal(a, b) }) {
		return r.lists
	}
	r.of, r.lists = payloads, nil
	for _, payload := range payloads {
		ders, err := r.read(payload)
		if err != nil {
			continue
		}
		for _, der := range ders {
			if l, err := x509.ParseRevocationList(der); err == nil {
				r.lists = append(r.lists, listOf(l))
			}
		}
	}
	return r.lists
}

func listOf(l *x509.RevocationList) list {
	out := list{issuer: l.RawIssuer, key: l.AuthorityKeyId, revoked: map[string]time.Time{}}
	for _, e := range l.RevokedCertificateEntries {
		out.revoked[e.SerialNumber.String()] = e.RevocationTime
	}
	return out
}
