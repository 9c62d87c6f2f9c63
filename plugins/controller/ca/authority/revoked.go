package authority

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaxLists is how many bytes the file with revocation lists may have: a ConfigMap of Kubernetes
// holds no more.
const MaxLists = 1 << 20

// Lists are certificate revocation lists (RFC 5280, section 5). They are immutable.
type Lists struct {
	// Texts are the lists, one in PEM each.
	Texts []string
	// Until is when the first of them ends (nextUpdate); zero: none does.
	Until time.Time
	// Missing are those on the authority's way to its root of whom there is no list. OpenSSL, and
	// so Envoy, believes nobody by the others then.
	Missing []string
}

// Lists reads lists in PEM, each of which must be signed by one of the authority's certificates.
// Errors say which list is wrong.
func (a *Authority) Lists(text []byte) (*Lists, error) {
	if len(text) > MaxLists {
		return nil, fmt.Errorf("it has %d bytes; %d are taken", len(text), MaxLists)
	}
	out, of := &Lists{}, map[string]bool{}
	by := slices.Concat([]*x509.Certificate{a.Certificate}, a.Chain, a.Roots)
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		n := len(out.Texts) + 1
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "X509 CRL" {
			return nil, fmt.Errorf("list %d is no certificate revocation list in PEM (X509 CRL)", n)
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("list %d can't be read: %w", n, err)
		}
		if err := signedBy(list, by); err != nil {
			return nil, fmt.Errorf("list %d, of %s, %w", n, list.Issuer, err)
		}
		of[string(list.RawIssuer)] = true
		out.Texts = append(out.Texts, string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})))
		if end := list.NextUpdate; !end.IsZero() && (out.Until.IsZero() || end.Before(out.Until)) {
			out.Until = end
		}
	}
	if len(out.Texts) == 0 {
		return nil, errors.New("it has no list")
	}
	for _, c := range a.way() {
		if !of[string(c.RawSubject)] {
			out.Missing = append(out.Missing, c.Subject.String())
		}
	}
	return out, nil
}

// way is the authority's certificate, and those between it and its root, with that.
func (a *Authority) way() []*x509.Certificate {
	all := slices.Clone(a.Chain)
	if len(all) == 0 {
		return []*x509.Certificate{a.Certificate}
	}
	for _, r := range a.Roots {
		if bytes.Equal(r.RawSubject, all[len(all)-1].RawIssuer) {
			return append(all, r)
		}
	}
	return all
}

func signedBy(list *x509.RevocationList, by []*x509.Certificate) error {
	err := errors.New("is signed by none of the CA's certificates")
	for _, c := range by {
		if !bytes.Equal(c.RawSubject, list.RawIssuer) {
			continue
		}
		failed := list.CheckSignatureFrom(c)
		if failed == nil {
			return nil
		}
		err = fmt.Errorf("is not signed by the certificate of that name: %w", failed)
	}
	return err
}

// Wrong says why the lists aren't for proxies: one has ended, or one is missing. Nil are.
func (l *Lists) Wrong(now time.Time) string {
	switch {
	case l == nil:
		return ""
	case l.Ended(now):
		return fmt.Sprintf("a list has ended on %s; whoever made it should make the next one", l.Until.UTC().Format(time.RFC3339))
	case len(l.Missing) > 0:
		return fmt.Sprintf("there is no list of %q: proxies need one of each CA on the way to the root, or believe nobody", l.Missing)
	}
	return ""
}

// Ended reports whether one of the lists has ended. Nil has not.
func (l *Lists) Ended(now time.Time) bool { return l != nil && !l.Until.IsZero() && now.After(l.Until) }

// Same reports whether two are the same; nil is none.
func (l *Lists) Same(as *Lists) bool {
	if l == nil || as == nil {
		return l == as
	}
	return slices.Equal(l.Texts, as.Texts)
}
