package spiffe

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets/usable"
	"github.com/coxswain-mesh/coxswain/plugins/internal/polling"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Source publishes trust bundles.
type Source struct {
	config  Config
	fetcher *keysets.Fetcher
}

// New returns the source of a config; an error says that its roots can't be read.
func New(c Config) (*Source, error) {
	f, err := keysets.New(keysets.Bounds{CAFile: c.CAFile, Blocked: c.Blocked, LinkLocal: c.LinkLocal, MaxBytes: c.MaxBytes})
	if err != nil {
		return nil, err
	}
	return &Source{config: c, fetcher: f}, nil
}

// Run keeps bundles fresh until ctx ends. Nobody waits for the first ones: until they are there,
// nobody of their trust domains is believed.
func (s *Source) Run(ctx context.Context, out sdk.Publisher) error {
	defer s.fetcher.Close()
	c := s.config
	polled := polling.Source[Endpoint]{
		Pace:    polling.Pace{Refresh: c.Refresh, Retry: c.Retry, MaxRetry: c.MaxRetry, Concurrent: 8},
		Table:   bundle.Table,
		Name:    "bundle",
		Failed:  "a trust bundle can't be fetched; the one that was fetched before counts, if any",
		Fetched: "a trust bundle is fetched",
		Wants:   s.wants,
		Given:   given,
		Fetch:   s.fetch,
		Row: func(key string, e Endpoint, payload string) *sdk.Row {
			return &sdk.Row{Key: key, Source: e.URL, Payload: []byte(payload)}
		},
	}
	return polled.Run(ctx, out)
}

// fetch returns the payload of a trust domain's row.
// Source: SPIFFE Trust Domain and Bundle, section 4; SPIFFE Federation, section 5.2.1 (https_web).
func (s *Source) fetch(ctx context.Context, e Endpoint) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	text, err := s.fetcher.Set(ctx, e.URL)
	if err != nil {
		return "", err
	}
	domain, err := spiffeid.TrustDomainFromString(e.TrustDomain)
	if err != nil {
		return "", err
	}
	found, err := spiffebundle.Parse(domain, []byte(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.URL, err)
	}
	var ders [][]byte
	for _, c := range found.X509Authorities() {
		ders = append(ders, c.Raw)
	}
	if len(ders) == 0 {
		return "", fmt.Errorf("%s: the bundle has no X.509 authority (keys of use x509-svid)", e.URL)
	}
	texts, err := encode(ders)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.URL, err)
	}
	payload, err := bundle.Bundle{TrustDomain: domain.Name(), Certificates: texts}.Payload()
	if err == nil && len(payload) > usable.MaxBytes {
		return "", fmt.Errorf("%s: the bundle's certificates have %d bytes; %d are taken", e.URL, len(payload), usable.MaxBytes)
	}
	return string(payload), err
}

// signs reports, as an error, why a certificate (DER) is no authority.
func signs(der []byte) error {
	c, err := x509.ParseCertificate(der)
	switch {
	case err != nil:
		return err
	case !c.IsCA:
		return fmt.Errorf("the certificate of %q is no authority's: it may not sign", c.Subject)
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("an authority's key may not be used to sign certificates")
	}
	return nil
}
