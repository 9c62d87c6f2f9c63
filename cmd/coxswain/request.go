package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// requestTimeout is pilot-discovery's.
const requestTimeout = 60 * time.Second

func requestCommand(p *program) *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "request METHOD PATH [BODY]",
		Short: "Make an HTTP request to the control plane on this machine and print the answer",
		Example: `  coxswain request GET /debug/streams
  coxswain request GET /metrics`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return usageError{fmt.Errorf("coxswain request wants METHOD PATH [BODY], such as: coxswain request GET /debug/streams")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			code, body, err := call(c.Context(), args[0], addr, args[1], []byte(strings.Join(args[2:], "")))
			if err != nil {
				return err
			}
			fmt.Fprintln(p.out, strings.TrimRight(string(body), "\n"))
			if code > 399 && code != http.StatusNotFound {
				return fmt.Errorf("%s %s: %d %s", args[0], args[1], code, http.StatusText(code))
			}
			return nil
		},
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:15014", "address of the monitoring port")
	return c
}

// tokenVariable has what commands show to a control plane on another machine.
const tokenVariable = "COXSWAIN_TOKEN"

// tokenKey is that of the token in a context.
type tokenKey struct{}

// authorityVariable has the file of the authorities that certificates of https:// addresses come
// from; without it those of the system count.
const authorityVariable = "COXSWAIN_CA"

// authorityKey is that of the file's name in a context.
type authorityKey struct{}

// base is the URL of an address: HOST:PORT in plain text, or https://HOST:PORT.
func base(addr string) string {
	if strings.HasPrefix(addr, "https://") {
		return strings.TrimSuffix(addr, "/")
	}
	return "http://" + addr
}

// believing has certificates of the authorities in a file count, and no others.
func believing(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("$%s: %w", authorityVariable, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("$%s: %s holds no certificate in PEM", authorityVariable, file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// call returns what a control plane answers.
func call(ctx context.Context, method, addr, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	url := base(addr) + "/" + strings.TrimPrefix(path, "/")
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, usageError{err}
	}
	if token, _ := ctx.Value(tokenKey{}).(string); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if file, _ := ctx.Value(authorityKey{}).(string); file != "" {
		if transport.TLSClientConfig, err = believing(file); err != nil {
			return 0, nil, err
		}
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%w; is a control plane running there? (--addr)", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	return resp.StatusCode, answer, nil
}
