// Package keysets gets key sets (RFC 7517) from where issuers of tokens publish them, by HTTP.
package keysets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// discoveryPath is where an issuer describes itself (OpenID Connect Discovery 1.0, section 4.1).
const discoveryPath = "/.well-known/openid-configuration"

// maxURI is how many bytes a URI may have. Source: RFC 9110, section 4.1, has 8000 as the least
// that is to be understood.
const maxURI = 8000

// Bounds of a Fetcher.
type Bounds struct {
	// CAFile is a PEM file with roots that are trusted besides the system's; empty: those alone.
	CAFile string
	// Blocked are addresses that are never connected to, whatever a name resolves to.
	Blocked []netip.Prefix
	// LinkLocal: addresses of the link itself may be connected to (RFC 3927; RFC 4291, section
	// 2.5.6), where clouds tell machines their credentials.
	LinkLocal bool
	// MaxBytes is how large an answer may be.
	MaxBytes int64
}

// Fetcher gets key sets by HTTP and HTTPS.
type Fetcher struct {
	client   *http.Client
	maxBytes int64
}

// New returns a Fetcher; an error says that its roots can't be read.
func New(b Bounds) (*Fetcher, error) {
	roots, err := trusted(b.CAFile)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return b.Admits(address) }}
	return &Fetcher{maxBytes: b.MaxBytes, client: &http.Client{Transport: &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
	}}}, nil
}

// Close closes connections that nobody uses.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// trusted are the system's roots, and those of a file; nil for the system's alone.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("caFile: %s holds no certificate in PEM", file)
	}
	return pool, nil
}

// Set returns the key set at a URI, as text: a JSON object with a list `keys`.
func (f *Fetcher) Set(ctx context.Context, uri string) (string, error) {
	body, err := f.get(ctx, uri)
	if err != nil {
		return "", err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return "", fmt.Errorf("%s: the answer is no key set: it has no list `keys`", uri)
	}
	return string(body), nil
}

// About is what an issuer says of itself: its name, and where its keys are.
type About struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}

// Discover asks an issuer where its keys are. Whether it is the right one the caller compares.
func (f *Fetcher) Discover(ctx context.Context, issuer string) (About, error) {
	at := strings.TrimSuffix(issuer, "/") + discoveryPath
	body, err := f.get(ctx, at)
	if err != nil {
		return About{}, err
	}
	var about About
	if err := json.Unmarshal(body, &about); err != nil || about.JWKSURI == "" {
		return About{}, fmt.Errorf("%s: the answer names no jwks_uri", at)
	}
	return about, nil
}

func (f *Fetcher) get(ctx context.Context, uri string) ([]byte, error) {
	if len(uri) > maxURI {
		return nil, fmt.Errorf("the URI has %d bytes; %d are taken", len(uri), maxURI)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of HTTP or HTTPS", uri)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", uri, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, f.maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", uri, err)
	case int64(len(body)) > f.maxBytes:
		return nil, fmt.Errorf("%s: %w of %d bytes", uri, errTooLarge, f.maxBytes)
	}
	return body, nil
}

var errTooLarge = errors.New("the answer is larger than the limit")
