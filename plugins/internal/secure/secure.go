// Package secure is how plugins secure their connections: certificates and keys in files (PEM) that
// their configs name.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// TLS are the files of a client. The client's certificate is read at each connection, so that it
// may be renewed.
type TLS struct {
	// CA are the certificates that the server's is signed by; empty: the system's.
	CA string `json:"ca" doc:"File of the certificates that the server's is signed by; the system's if absent."`
	// Cert and Key are the client's own.
	Cert string `json:"cert" doc:"File of the client's certificate."`
	Key  string `json:"key" doc:"File of its key."`
	// ServerName is the name in the server's certificate, where it is not that of the address.
	ServerName string `json:"serverName" doc:"The name in the server's certificate, where it is not that of the address."`
}

// Check reports what is wrong with the settings, as *sdk.FieldError below a field. Nil is fine.
func (t *TLS) Check(field string) error {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		return strict.Errorf(field+".cert", "cert and key belong together")
	}
	return nil
}

// Config reads the CA's file. Nil stands for the system's certificates.
func (t *TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t == nil {
		return c, nil
	}
	c.ServerName = t.ServerName
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("tls.ca: there is no certificate in " + t.CA)
		}
	}
	if cert, key := t.Cert, t.Key; cert != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		}
	}
	return c, nil
}
