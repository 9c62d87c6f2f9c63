package plugintest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestLateAuthenticator: who has not decided in time refuses nobody, whatever it says of that.
func TestLateAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, sdk.AuthenticatorPlugin{Name: "door", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
			return sdk.AuthenticatorFunc(func(ctx context.Context, _ sdk.Credentials) ([]string, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}), nil
		})}, nil)
		if got := h.Authenticate(header("slow")); got.Refusal != "" || got.Failure != "no answer within limits.call" {
			t.Errorf("%v", got)
		}
	})
}

// TestLateCall: who has not answered in time has not failed: the caller may try again.
func TestLateCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := plugintest.Start(t, answering(func(ctx context.Context, _ sdk.Call) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), nil)
		if got := h.Call(&pb.Call{Method: "/test.Echo/Say"}); got.Code != 14 || got.Message != "no answer within limits.call" {
			t.Errorf("%v", got)
		}
	})
}
