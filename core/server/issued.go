package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"google.golang.org/grpc/credentials"
)

// Issuer says how a plugin makes the certificate of the secure port where no files are named. The
// core knows no form of it: the command hands it over.
type Issuer struct {
	// Method is the method of gRPC, as `/package.Service/Method`, that such a plugin offers.
	Method string
	// Names are the DNS names of the certificate.
	Names []string
	// Request makes the method's request of a certificate signing request (PKCS #10 in DER).
	Request func(csr []byte) ([]byte, error)
	// Chain reads the method's response: certificates in DER, that of the port first, without the
	// root.
	Chain func(response []byte) ([][]byte, error)
	// Table has the authorities that clients' certificates may come from; Authorities reads the
	// payload of one of its rows, and Revocations its lists of those that count no more (X.509 CRL,
	// in DER).
	Table       string
	Authorities func(payload []byte) (Authorities, error)
	Revocations func(payload []byte) ([][]byte, error)
	// Stopped reads the payload of a row of the table faults, and returns why no certificate is
	// made; empty: it says nothing of that. nil: none does.
	Stopped func(fault []byte) string
	// DomainOf returns the trust domain of one of a certificate's URIs, if it has one.
	DomainOf func(uri string) (domain string, ok bool)
}

// Authorities sign for a trust domain.
type Authorities struct {
	// Domain is the trust domain.
	Domain string
	// Local: they are believed for trust domains that no row names, too.
	Local bool
	// Certificates are theirs, in DER.
	Certificates [][]byte
}

// issuing reports whether a plugin makes the certificate of the ports that need one: no files have
// it.
func (cfg *Config) issuing() bool {
	secure := cfg.SecureGRPCAddr != "" && authenticates(cfg.Set)
	return (secure || cfg.TLS.Webhooks.Address != "" || cfg.MonitoringTLS) && !cfg.TLS.named() && cfg.Words.Issuer != nil
}

// plugins is what is asked of core/control.
type plugins interface {
	Call(ctx context.Context, m *pb.Call) ([]byte, error)
	Offers(method string) (yes, perhaps bool)
	Rows(table string) []*pb.Row
}

// issued is a certificate that a plugin makes, and makes anew in time.
type issued struct {
	Issuer
	plugins plugins
	log     *slog.Logger
	// first is closed when there is a certificate.
	first chan struct{}

	mu          sync.Mutex
	own         *tls.Certificate
	authorities *believed
}

func newIssued(by Issuer, p plugins, log *slog.Logger) *issued {
	return &issued{Issuer: by, plugins: p, log: log, first: make(chan struct{})}
}

const (
	// look is how often it is looked whether the authorities have changed.
	look = time.Second
	// soonAgain is how often before there is a certificate.
	soonAgain = 20 * time.Millisecond
	// renewAt is the share of a certificate's life after which the next is asked for.
	renewAt = 0.5
	// retryFirst and retryMost bound the time between tries.
	retryFirst, retryMost = time.Second, 30 * time.Second
)

// run keeps the certificate fresh until ctx ends.
func (i *issued) run(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var rows [][]byte
	var renew, again time.Time
	pause := retryFirst
	for {
		now := time.Now()
		offered, perhaps := i.plugins.Offers(i.Method)
		current := i.rows()
		if changed := !slices.EqualFunc(rows, current, slices.Equal[[]byte]); offered && len(current) > 0 &&
			(changed || now.After(renew)) && !now.Before(again) {
			end, err := i.issue(ctx, current)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				i.log.Warn("the secure port's certificate can't be renewed; it is tried again", "in", pause, "error", err)
				again, pause = now.Add(pause), min(2*pause, retryMost)
			default:
				rows, renew, again, pause = current, now.Add(time.Duration(renewAt*float64(end.Sub(now)))), now, retryFirst
			}
		}
		select {
		case <-tick.C:
		case <-i.soon(offered || perhaps):
		case <-ctx.Done():
			return
		}
	}
}

// soon receives in a moment while there is no certificate yet, and somebody may make one.
func (i *issued) soon(may bool) <-chan time.Time {
	select {
	case <-i.first:
		return nil
	default:
	}
	if !may {
		return nil
	}
	return time.After(soonAgain)
}

// rows returns the payloads of the authorities' rows, sorted.
func (i *issued) rows() (all [][]byte) {
	for _, r := range i.plugins.Rows(i.Table) {
		all = append(all, r.Payload)
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// issue has a certificate made for a new key, and returns when it ends.
func (i *issued) issue(ctx context.Context, rows [][]byte) (end time.Time, err error) {
	authorities := newBelieved(i.DomainOf)
	for _, payload := range rows {
		a, err := i.Authorities(payload)
		if err == nil {
			err = authorities.add(a)
		}
		if err != nil {
			return end, fmt.Errorf("the authorities of %s: %w", i.Table, err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return end, err
	}
	leaf, chain, err := i.sign(ctx, key)
	if err != nil {
		return end, err
	}
	i.mu.Lock()
	i.own, i.authorities = &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, authorities
	i.mu.Unlock()
	select {
	case <-i.first:
	default:
		close(i.first)
	}
	i.log.Info("the secure port has a certificate", "names", i.Names, "until", leaf.NotAfter.UTC().Format(time.RFC3339))
	return leaf.NotAfter, nil
}

// sign asks the plugin.
func (i *issued) sign(ctx context.Context, key crypto.Signer) (leaf *x509.Certificate, chain [][]byte, err error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: i.Names}, key)
	if err != nil {
		return nil, nil, err
	}
	request, err := i.Request(csr)
	if err != nil {
		return nil, nil, err
	}
	response, err := i.plugins.Call(ctx, &pb.Call{Method: i.Method, Request: request, Core: true})
	if err != nil {
		return nil, nil, err
	}
	if chain, err = i.Chain(response); err != nil {
		return nil, nil, err
	}
	if len(chain) == 0 {
		return nil, nil, errors.New("the answer has no certificate")
	}
	if leaf, err = x509.ParseCertificate(chain[0]); err != nil {
		return nil, nil, err
	}
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, nil, errors.New("the certificate is of another key")
	}
	return leaf, chain, nil
}

// now returns the certificate and the authorities of clients.
func (i *issued) now() (own *tls.Certificate, authorities *believed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.own, i.authorities
}

// pending reports whether there is a certificate, and else says why not yet; empty: none will come.
func (i *issued) pending() (made bool, why string) {
	own, _ := i.now()
	offered, perhaps := i.plugins.Offers(i.Method)
	switch {
	case own != nil:
		return true, ""
	case offered && i.stopped() != "":
		return false, i.stopped()
	case offered:
		return false, "the certificate of port secureGRPC is being made"
	case perhaps:
		return false, "a plugin that may make the certificate of port secureGRPC has not started"
	}
	return false, ""
}

// stopped is why no certificate is made; empty: nobody says that none is.
func (i *issued) stopped() string {
	if i.Stopped == nil {
		return ""
	}
	for _, r := range i.plugins.Rows(state.Faults) {
		if why := i.Stopped(r.Payload); why != "" {
			return why
		}
	}
	return ""
}

// secure returns credentials that follow the certificate.
func (i *issued) secure(t *TLS) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion: t.MinVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own, authorities := i.now()
			c := t.with([]tls.Certificate{*own}, authorities.pool)
			c.VerifyConnection = authorities.vouch
			return c, nil
		},
	})
}
