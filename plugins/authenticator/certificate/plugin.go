// Package certificate is the built-in plugin authenticator/certificate: callers by the certificate
// that they showed in TLS.
package certificate

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns authenticator/certificate.
func Plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name:    "authenticator/certificate",
		Version: "1",
		Headers: []string{}, // tokens are not its business
		New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
			return sdk.AuthenticatorFunc(Authenticate), nil
		}),
	}
}

// Authenticate returns the URIs among the subject's alternative names (RFC 5280, section 4.2.1.6)
// of the first certificate, the caller's own: SPIFFE IDs, in a mesh. The port has verified the
// chain before it asks.
func Authenticate(_ context.Context, c sdk.Credentials) ([]string, error) {
	if len(c.Certificates) == 0 {
		return nil, errors.New("no certificate was shown")
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0])
	if err != nil {
		return nil, fmt.Errorf("the certificate can't be read: %w", err)
	}
	var ids []string
	for _, u := range leaf.URIs {
		ids = append(ids, u.String())
	}
	if len(ids) == 0 {
		return nil,
			errors.New("the certificate has no URI among the subject's alternative names, such as spiffe://cluster.local/ns/NAMESPACE/sa/SERVICE-ACCOUNT")
	}
	return ids, nil
}
