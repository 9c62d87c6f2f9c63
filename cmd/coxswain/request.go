package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// requestTimeout is pilot-discovery's.
const requestTimeout = 60 * time.Second

func (p *program) request() *cobra.Command {
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

// call returns what a control plane answers.
func call(ctx context.Context, method, addr, path string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	url := "http://" + addr + "/" + strings.TrimPrefix(path, "/")
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, usageError{err}
	}
	if token, _ := ctx.Value(tokenKey{}).(string); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
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
