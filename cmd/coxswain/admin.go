package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/spf13/cobra"
)

// adminVariable names the socket of the control plane that commands mean, where there are several.
const adminVariable = "COXSWAIN_ADMIN"

// which says which control plane a command means: by its admin socket, or by one of its ports.
// Neither: the only one that runs.
type which struct{ admin, addr string }

func (w *which) flags(c *cobra.Command) {
	c.Flags().StringVar(&w.addr, "addr", "", "address of one of the control plane's ports, if several run ($"+addrVariable+")")
	c.Flags().StringVar(&w.admin, "admin", "", "its admin socket instead ($"+adminVariable+")")
	c.MarkFlagsMutuallyExclusive("addr", "admin")
}

// meant is w with what the environment says, which flags override.
func meant(p *program, w which) which {
	if w == (which{}) {
		w.admin = p.variable(adminVariable)
	}
	if w == (which{}) {
		w.addr = p.variable(addrVariable)
	}
	return w
}

// ask makes a request on the admin socket and decodes the answer.
func ask(ctx context.Context, p *program, at which, method, path string, body, into any) (code int, raw []byte, err error) {
	socket, err := socketMeant(ctx, p, at)
	if err != nil {
		return 0, nil, err
	}
	return askSocket(ctx, socket, method, path, body, into)
}

func askSocket(ctx context.Context, socket, method, path string, body, into any) (code int, raw []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://coxswain"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", socket, errors.Unwrap(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if raw, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", socket, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return 0, nil, fmt.Errorf("%s: %s: %w", socket, bytes.TrimSpace(raw), err)
	}
	return resp.StatusCode, raw, nil
}
