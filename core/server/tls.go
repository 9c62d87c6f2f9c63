package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/tls/certprovider"
	"google.golang.org/grpc/credentials/tls/certprovider/pemfile"
)

// reread is how often the files of certificates are looked at.
const reread = 2 * time.Second

// TLS is how the secure xDS port shows who it is, and whom it believes. Files are PEM; they are
// read again when they change, and what can't be read leaves the last good ones in use.
type TLS struct {
	// CertFile and KeyFile lie in one directory, so that both change at once, as a mounted secret
	// does.
	CertFile, KeyFile string
	// CAFile has the authorities that clients' certificates come from. A client without a
	// certificate is let in, and has to show something else to the authenticators; one with a
	// certificate of another authority is not.
	CAFile string
	// MinVersion and CipherSuites, IANA's numbers, as in crypto/tls; zero and empty: Go's own
	// choice, at least TLS 1.2.
	MinVersion   uint16
	CipherSuites []uint16
	// Webhooks is the port of webhooks, with the same certificate.
	Webhooks Webhooks
}

// Webhooks is the webhook port.
type Webhooks struct {
	// Address is HOST:PORT; empty: there is none.
	Address string
	// CAFile has the authorities of clients that may send requests; empty: everybody may.
	CAFile string
}

// pool reads the authorities of clients, at each connection.
func (w *Webhooks) pool() (*x509.CertPool, error) {
	text, err := os.ReadFile(w.CAFile)
	if err != nil {
		return nil, fmt.Errorf("httpsClientCAFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("httpsClientCAFile %s holds no certificate in PEM", w.CAFile)
	}
	return pool, nil
}

// files returns how a connection is secured by the files.
func (t *TLS) files(context.Context) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tlsCertFile %s and tlsKeyFile %s: %w", t.CertFile, t.KeyFile, err)
	}
	return t.with([]tls.Certificate{own}, nil), nil
}

// check reads the files once, to say at the start what is wrong with them.
func (t *TLS) check() error {
	if t.CertFile == "" || t.KeyFile == "" || t.CAFile == "" {
		return errors.New(
			"secureGRPCAddr: TLS needs three files: set tlsCertFile, tlsKeyFile and caCertFile, or none of them where a plugin makes the certificate",
		)
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return fmt.Errorf("tlsCertFile %s and tlsKeyFile %s: %w", t.CertFile, t.KeyFile, err)
	}
	if _, err := os.ReadFile(t.CAFile); err != nil {
		return fmt.Errorf("caCertFile: %w", err)
	}
	return nil
}

// secure returns credentials that follow the files until close is called.
func (t *TLS) secure(ctx context.Context) (creds credentials.TransportCredentials, stop func(), err error) {
	own, err := pemfile.NewProvider(pemfile.Options{CertFile: t.CertFile, KeyFile: t.KeyFile, RefreshDuration: reread})
	if err != nil {
		return nil, nil, fmt.Errorf("tlsCertFile and tlsKeyFile: %w", err)
	}
	authorities, err := pemfile.NewProvider(pemfile.Options{RootFile: t.CAFile, RefreshDuration: reread})
	if err != nil {
		own.Close()
		return nil, nil, fmt.Errorf("caCertFile: %w", err)
	}
	stop = func() { own.Close(); authorities.Close() }
	if _, err := t.now(ctx, own, authorities); err != nil {
		stop()
		return nil, nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: t.MinVersion,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return t.now(hello.Context(), own, authorities)
		},
	}), stop, nil
}

// now is the configuration by what the files hold now.
func (t *TLS) now(ctx context.Context, own, authorities certprovider.Provider) (*tls.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*reread)
	defer cancel()
	certs, err := own.KeyMaterial(ctx)
	if err != nil {
		return nil, fmt.Errorf("tlsCertFile %s: %w", t.CertFile, err)
	}
	roots, err := authorities.KeyMaterial(ctx)
	if err != nil {
		return nil, fmt.Errorf("caCertFile %s holds no certificate in PEM: %w", t.CAFile, err)
	}
	return t.with(certs.Certs, roots.Roots), nil
}

// with is the configuration with the port's certificates, and those of clients' authorities.
func (t *TLS) with(own []tls.Certificate, authorities *x509.CertPool) *tls.Config {
	return &tls.Config{
		Certificates: own, ClientCAs: authorities, ClientAuth: tls.VerifyClientCertIfGiven,
		MinVersion: t.MinVersion, CipherSuites: t.CipherSuites, NextProtos: []string{"h2"},
		// A resumed session would not meet authorities that changed.
		SessionTicketsDisabled: true,
	}
}

// named reports whether files are named: otherwise a plugin makes the certificate.
func (t *TLS) named() bool { return t.CertFile+t.KeyFile+t.CAFile != "" }

// secured returns how the monitoring port is secured; nil: it is in plain text.
func secured(cfg *Config, by *issued) func(context.Context) (*tls.Config, error) {
	if !cfg.MonitoringTLS {
		return nil
	}
	return func(ctx context.Context) (*tls.Config, error) { return cfg.TLS.pages(ctx, by) }
}

// pages is how the monitoring port is secured: with the certificate and the authorities of the
// secure port, as they are now.
func (t *TLS) pages(ctx context.Context, by *issued) (*tls.Config, error) {
	if !t.named() {
		own, authorities := by.now()
		if own == nil {
			return nil, errors.New("the monitoring port has no certificate yet: a plugin is to make it (controller/ca)")
		}
		c := t.with([]tls.Certificate{*own}, authorities.pool)
		c.VerifyConnection = authorities.vouch
		return c, nil
	}
	c, err := t.files(ctx)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caCertFile: %w", err)
	}
	if c.ClientCAs = x509.NewCertPool(); !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("caCertFile %s holds no certificate in PEM", t.CAFile)
	}
	return c, nil
}
