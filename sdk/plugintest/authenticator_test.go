package plugintest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// doorkeeper has work of its own beside its answers.
type doorkeeper struct {
	sdk.AuthenticatorFunc
	ended chan struct{}
}

func (d *doorkeeper) Run(ctx context.Context, out sdk.Publisher) error {
	out.Log(sdk.Info, "at the door")
	<-ctx.Done()
	close(d.ended)
	return nil
}

// TestAuthenticator: calls run at once, each has its answer, and a panic is the operator's affair
// alone.
func TestAuthenticator(t *testing.T) {
	slow := make(chan struct{})
	d := &doorkeeper{ended: make(chan struct{}), AuthenticatorFunc: func(ctx context.Context, c sdk.Credentials) ([]string, error) {
		if _, ok := ctx.Deadline(); !ok {
			return nil, errors.New("no deadline")
		}
		switch c.Headers["authorization"] {
		case "slow":
			<-slow
			return []string{"slow"}, nil
		case "fast":
			close(slow)
			return []string{"fast"}, nil
		case "panic":
			panic("hunter2")
		case "empty":
			return nil, errors.New("")
		case "large":
			return []string{strings.Repeat("x", session.MaxMessage)}, nil
		}
		return nil, errors.New("unknown")
	}}
	h := plugintest.Start(t, sdk.AuthenticatorPlugin{Name: "door", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return d, nil })}, nil)
	done := make(chan []string)
	go func() { done <- h.Authenticate(header("slow")).Identities }()
	if got := h.Authenticate(header("fast")).Identities; !slices.Equal(got, []string{"fast"}) {
		t.Error(got)
	}
	if got := <-done; !slices.Equal(got, []string{"slow"}) {
		t.Error(got)
	}
	for shown, want := range map[string]string{"panic": "the plugin panicked", "empty": "it gave no reason", "large": "larger than 1 MiB", "x": "unknown"} {
		if got := h.Authenticate(header(shown)); !strings.Contains(got.Refusal+got.Failure, want) || len(got.Identities) > 0 {
			t.Errorf("%s: %v", shown, got)
		}
	}
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool { return text == "at the door" })
	logs := strings.Join(h.Logs(), "\n")
	for _, want := range []string{"at the door", "the plugin panicked", "authenticator_test.go"} {
		if !strings.Contains(logs, want) {
			t.Errorf("%q is not logged: %s", want, logs)
		}
	}
	if strings.Contains(logs, "hunter2") {
		t.Errorf("what was shown is logged: %s", logs)
	}
	if err := h.Drain(); err != nil {
		t.Error(err)
	}
	<-d.ended
}

// reader is an authenticator that reads rows: who calls is what the row says.
type reader struct{ seen atomic.Pointer[state.State] }

func (r *reader) Run(ctx context.Context, out sdk.Publisher) error {
	for {
		s, newer := out.State()
		r.seen.Store(s)
		select {
		case <-newer:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *reader) Authenticate(context.Context, sdk.Credentials) ([]string, error) {
	if row := r.seen.Load().Row("who", "is"); row != nil {
		return []string{string(row.Payload)}, nil
	}
	return nil, errors.New("nobody")
}

// TestAuthenticatorReads: an authenticator is sent the rows that it reads, and what changes in
// them.
func TestAuthenticatorReads(t *testing.T) {
	h := plugintest.Start(t, sdk.AuthenticatorPlugin{
		Name: "reader", Reads: []string{"who"}, New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return &reader{}, nil }),
	}, nil)
	for _, name := range []string{"a", "b"} {
		h.Update("who", []*sdk.Row{{Key: "is", Payload: []byte(name)}})
		for end := time.Now().Add(plugintest.Timeout); !slices.Equal(h.Authenticate(sdk.Credentials{}).Identities, []string{name}); {
			if time.Now().After(end) {
				t.Fatalf("it doesn't know %s", name)
			}
		}
	}
}

func header(value string) sdk.Credentials {
	return sdk.Credentials{Headers: map[string]string{"authorization": value}}
}
