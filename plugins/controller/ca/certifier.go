package ca

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
)

// ask is a certificate that somebody asks for.
type ask struct {
	authority.Request
	// csr is the request itself, for those who sign elsewhere.
	csr *x509.CertificateRequest
	// signer is whom it is to be signed by, in the words of the caller, where there are several to
	// choose from; empty: whoever signs.
	signer string
}

// certifier makes certificates. It is immutable.
type certifier interface {
	// certify returns a certificate and what it leads by, a certificate in PEM each, and the roots
	// that it leads to. The error is a *sdk.CallError.
	certify(ctx context.Context, a ask) (chain, roots []string, err error)
	// bundle returns the roots of all that it makes, a certificate in PEM each.
	bundle() []string
	same(as certifier) bool
	// String is who it is, for people.
	String() string
}

// self signs here.
type self struct{ *authority.Authority }

func (o self) certify(_ context.Context, a ask) (chain, roots []string, err error) {
	der, err := o.Sign(a.Request, time.Now())
	if err != nil {
		return nil, nil, refuse(codes.Internal, "the certificate can't be signed: %v", err)
	}
	chain = []string{string(authority.EncodeCertificate(der))}
	for _, c := range o.Chain {
		chain = append(chain, string(authority.EncodeCertificate(c.Raw)))
	}
	return chain, o.Bundle(), nil
}

func (o self) bundle() []string { return o.Bundle() }

func (o self) same(as certifier) bool {
	other, ok := as.(self)
	return ok && o.Same(other.Authority)
}

func (o self) String() string {
	return fmt.Sprintf("%s, until %s", o.Certificate.Subject, o.Certificate.NotAfter.UTC().Format(time.RFC3339))
}
