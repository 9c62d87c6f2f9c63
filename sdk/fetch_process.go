//go:build !wasip1

package sdk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// fetch works outside of a session too, but says so where WASM would.
func fetch(ctx context.Context, r Request) (*Response, error) {
	if _, err := sessionOf(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	got, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return response(got)
}

func response(got *http.Response) (*Response, error) {
	r := &Response{Status: got.StatusCode, Headers: map[string]string{}}
	left := MaxResponse
	for name := range got.Header {
		r.Headers[name] = got.Header.Get(name)
		left -= len(name) + len(r.Headers[name])
	}
	body, err := io.ReadAll(io.LimitReader(got.Body, int64(max(left, 0))+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > left:
		return nil, fmt.Errorf("the answer is larger than %d bytes; ask for less at once", MaxResponse)
	}
	r.Body = body
	return r, nil
}
