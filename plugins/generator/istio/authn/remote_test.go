package authn

import (
	"testing"

	security "istio.io/api/security/v1beta1"
)

// TestConstants says how long proxies wait for keys and keep them.
func TestConstants(t *testing.T) {
	k := Keys{By: FetchProxy, Cluster: func(string, uint32) (string, bool) { return "c", true }}
	got := k.remote(&security.JWTRule{JwksUri: "https://keys.example/set"})
	if wait, keep := got.GetHttpUri().GetTimeout().AsDuration(), got.GetCacheDuration().AsDuration(); wait.String() != "5s" || keep.String() != "5m0s" {
		t.Errorf("waits %v, keeps them for %v", wait, keep)
	}
}
