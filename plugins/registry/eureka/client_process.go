//go:build !wasip1

package eureka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// client asks over HTTP. One goroutine uses it.
type client struct {
	config *Config
	http   *http.Client
	body   bytes.Buffer
}

// hasFiles: certificates can be read from files.
const hasFiles = true

// newClient returns the client of a config; an error says that its TLS files can't be read.
func newClient(c *Config) (*client, error) {
	setup, err := c.TLS.Config()
	if err != nil {
		return nil, &sdk.FieldError{Field: "tls", Err: err}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &client{config: c, http: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: setup, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
			MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		// The password would go along to wherever a redirection leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get asks a server, and returns what it answered, which is the client's until it is asked again.
func (c *client) get(ctx context.Context, server, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, errors.New("no whole answer in time"))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	password := ""
	if c.config.Username != "" {
		if password, err = c.config.Secret(); err != nil {
			return nil, err
		}
		request.SetBasicAuth(c.config.Username, password)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, said.HideIn(because(ctx, err), c.config.Username+":"+password, password)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return nil, &refusal{answer.StatusCode, said.Hide(string(text), c.config.Username+":"+password, password)}
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(io.LimitReader(answer.Body, c.config.MaxBytes+1)); err != nil {
		return nil, because(ctx, err)
	}
	if int64(c.body.Len()) > c.config.MaxBytes {
		return nil, fmt.Errorf("the answer is larger than %d bytes (maxBytes)", c.config.MaxBytes)
	}
	return c.body.Bytes(), nil
}

// because returns why a context has ended, if it has.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
