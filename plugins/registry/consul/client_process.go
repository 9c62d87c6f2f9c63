//go:build !wasip1

package consul

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// library asks by way of Consul's own client library.
type library struct {
	config    *Config
	client    *api.Client
	transport *http.Transport
}

// most is how many questions may be under way, and longest how long one may wait.
const most, longest = 1000, 10 * time.Minute

// canStop: a question that waits can be taken back.
const canStop = true

// newClient returns the client of a config; an error says that its TLS files can't be read.
func newClient(c *Config) (client, error) {
	transport, err := newTransport(c)
	if err != nil {
		return nil, &sdk.FieldError{Field: "tls", Err: err}
	}
	made, err := api.NewClient(&api.Config{
		Address: c.Address, Namespace: c.Namespace, Partition: c.Partition, Transport: transport,
		HttpClient: &http.Client{
			Transport: &bounded{next: transport, most: c.MaxBytes},
			// The token's header would go along to wherever a redirection leads.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		return nil, err
	}
	return &library{c, made, transport}, nil
}

func newTransport(c *Config) (*http.Transport, error) {
	t := &http.Transport{
		MaxConnsPerHost: c.Watches, MaxIdleConns: c.Watches, MaxIdleConnsPerHost: c.Watches, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	t.DialContext = dialer.DialContext
	if c.socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", c.socket)
		}
	}
	setup, err := api.SetupTLSConfig(&api.TLSConfig{Address: c.TLS.ServerName, CAFile: c.TLS.CAFile, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile})
	if err != nil {
		return nil, err
	}
	setup.MinVersion = tls.VersionTLS12
	if c.TLS.CertFile != "" { // read anew for each connection: certificates are exchanged while we run
		setup.Certificates = nil
		setup.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
			return &pair, err
		}
	}
	t.TLSClientConfig = setup
	return t, nil
}

func (l *library) close() { l.transport.CloseIdleConnections() }

func (l *library) services(ctx context.Context, q question) (a answer) {
	a.err = l.ask(ctx, "/v1/catalog/services", &a.names, "", q, &a)
	if a.err == nil && a.names.all == nil {
		a.err = errNull
	}
	return a
}

func (l *library) instances(ctx context.Context, name string, q question) (a answer) {
	a.most = l.config.MaxInstances
	a.err = l.ask(ctx, "/v1/health/service/"+name, &a.listed, l.config.filter(), q, &a)
	if a.err == nil && !a.there {
		a.err = errNull
	}
	return a
}

func (l *library) ask(ctx context.Context, path string, into any, filter string, q question, a *answer) error {
	token, err := l.config.token()
	if err != nil {
		return err
	}
	options := (&api.QueryOptions{
		Datacenter: q.datacenter, AllowStale: l.config.Stale && !q.consistent, RequireConsistent: q.consistent, WaitIndex: q.index, WaitTime: q.wait,
		Token: token, Filter: filter, NodeMeta: l.config.Services.NodeMeta,
	}).WithContext(ctx)
	if q.direct {
		options.Near = byDistance
	}
	meta, err := l.client.Raw().Query(path, into, options)
	var status api.StatusError
	switch {
	case errors.As(err, &status):
		return &refusal{status.Code, said.Hide(status.Body, token)}
	case err != nil:
		return said.HideIn(err, token)
	}
	a.index, a.filtered, a.anonymous = meta.LastIndex, meta.ResultsFilteredByACLs, token == "" && meta.DefaultACLPolicy == "deny"
	a.streamed = meta.QueryBackend == api.QueryBackendStreaming
	a.leader = meta.KnownLeader || a.streamed
	return nil
}

// bounded refuses answers that are larger than most bytes, and those beyond together times as much
// that are being read at once. Of refusals it reads mostRefusal bytes.
type bounded struct {
	next http.RoundTripper
	most int64
	// held is how much is being read at once.
	held atomic.Int64
}

const together, mostRefusal = 2, 64 << 10

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	switch {
	case err != nil:
	case answer.StatusCode != http.StatusOK:
		answer.Body = limited{io.LimitReader(answer.Body, mostRefusal), answer.Body}
	default:
		answer.Body = &boundedBody{ReadCloser: answer.Body, of: b}
	}
	return answer, err
}

type limited struct {
	io.Reader
	io.Closer
}

type boundedBody struct {
	io.ReadCloser
	of   *bounded
	read int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.full(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.of.held.Add(int64(n))
	if full := b.full(); full != nil {
		return 0, full
	}
	return n, err
}

func (b *boundedBody) full() error {
	switch most := b.of.most; {
	case b.read > most:
		return fmt.Errorf("the answer is larger than %d bytes (maxBytes)", most)
	case b.of.held.Load() > most*together:
		return fmt.Errorf("the answers to questions that were asked at once are larger than %d bytes (maxBytes, times %d)", most*together, together)
	}
	return nil
}

func (b *boundedBody) Close() error {
	b.of.held.Add(-b.read)
	b.read = 0
	return b.ReadCloser.Close()
}
