package sdk

import (
	"context"
	"time"
)

// Request is an HTTP call.
type Request struct {
	// Method is GET if it is empty.
	Method, URL string
	Headers     map[string]string
	Body        []byte
	// Timeout is 30 s if it is 0, which is also the most; ctx may end the call earlier.
	Timeout time.Duration
}

// Response is an HTTP answer, of whatever status. Of a header that comes more than once it has the
// first.
type Response struct {
	Status  int
	Headers map[string]string
	Body    []byte
}

// MaxResponse is the most that the headers and the body of a Response may have, in bytes.
const MaxResponse = messageRoom

// fetchTimeout is the most that a call may take.
const fetchTimeout = 30 * time.Second

// Fetch makes an HTTP call and waits for the answer; other goroutines go on meanwhile. In a WASM
// plugin its runner makes the call, to hosts that the entry's `allow.http` grants; a process makes
// it itself. ctx must be the one that the SDK gave to the plugin's method, or made from it. An
// error means that there was no answer, or one larger than MaxResponse.
func Fetch(ctx context.Context, r Request) (*Response, error) {
	if r.Method == "" {
		r.Method = "GET"
	}
	if r.Timeout <= 0 || r.Timeout > fetchTimeout {
		r.Timeout = fetchTimeout
	}
	return fetch(ctx, r)
}

// Sleep waits for a time, or until ctx ends, whose error it returns then; other goroutines go on
// meanwhile.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
