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
	"time"

	"github.com/hashicorp/consul/api"

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
			Transport: bounded{transport, c.MaxBytes},
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
	if a.err == nil && a.names == nil {
		a.err = errNull
	}
	return a
}

func (l *library) instances(ctx context.Context, name string, q question) (a answer) {
	a.err = l.ask(ctx, "/v1/health/service/"+name, &a.entries, l.config.filter(), q, &a)
	if a.err == nil && a.entries == nil {
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
	meta, err := l.client.Raw().Query(path, into, options)
	var status api.StatusError
	switch {
	case errors.As(err, &status):
		return &refusal{status.Code, status.Body}
	case err != nil:
		return err
	}
	a.index, a.filtered, a.anonymous = meta.LastIndex, meta.ResultsFilteredByACLs, token == "" && meta.DefaultACLPolicy == "deny"
	a.leader = meta.KnownLeader || meta.QueryBackend == api.QueryBackendStreaming
	return nil
}

// bounded refuses answers that are larger than most bytes.
type bounded struct {
	next http.RoundTripper
	most int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{answer.Body, b.most, b.most}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left, most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer is larger than %d bytes (maxBytes)", b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is larger than %d bytes (maxBytes)", b.most)
	}
	return n, err
}
