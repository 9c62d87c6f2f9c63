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
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// adminVariable names the socket of the control plane that commands mean, where there are several.
const adminVariable = "COXSWAIN_ADMIN"

// socket returns the admin socket of the one control plane of this user that runs, or of the one that is meant.
func (p *program) socket(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	found, err := filepath.Glob(filepath.Join(p.runtimeDir(), "*", api.Socket))
	if err != nil {
		return "", err
	}
	var live []string
	for _, path := range found {
		if c, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
			_ = c.Close()
			live = append(live, path)
		}
	}
	switch len(live) {
	case 0:
		return "", fmt.Errorf("no control plane of this user runs here (looked for %s); start one with coxswain discovery, or give --admin SOCKET", filepath.Join(p.runtimeDir(), "*", api.Socket))
	case 1:
		return live[0], nil
	}
	return "", usageError{fmt.Errorf("several control planes run here; choose one with --admin or $%s:\n  %s", adminVariable, strings.Join(live, "\n  "))}
}

// ask makes a request on the admin socket and decodes the answer.
func (p *program) ask(ctx context.Context, given, method, path string, body, into any) (code int, raw []byte, err error) {
	socket, err := p.socket(ctx, given)
	if err != nil {
		return 0, nil, err
	}
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
