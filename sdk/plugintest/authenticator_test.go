package plugintest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/session"
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

// TestAuthenticator: calls run at once, each has its answer, and a panic is the operator's affair alone.
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
	h := plugintest.Start(t, sdk.Plugin{Name: "door", Kind: sdk.AuthenticatorKind(func([]byte) (sdk.Authenticator, error) { return d, nil })}, nil)
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

func header(value string) sdk.Credentials {
	return sdk.Credentials{Headers: map[string]string{"authorization": value}}
}
