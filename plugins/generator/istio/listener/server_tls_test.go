package listener

import (
	"slices"
	"testing"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

func TestCiphersOfServers(t *testing.T) {
	given := []string{"AES128-SHA", "AES128-SHA", "nothing", "A-", "Z-", "a-", "z-", "0-", "9-", "-ALL", "[AES128-SHA|AES256-SHA]", "ALL", "HIGH"}
	if got, want := knownCiphers(given), []string{"AES128-SHA", "-ALL", "[AES128-SHA|AES256-SHA]", "ALL"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCertificatesOfAnybody: a server takes certificates that nobody it knows has signed where it
// says so, if it asks for any.
func TestCertificatesOfAnybody(t *testing.T) {
	for mode, want := range map[networking.ServerTLSSettings_TLSmode]tls.CertificateValidationContext_TrustChainVerification{
		networking.ServerTLSSettings_MUTUAL:          tls.CertificateValidationContext_ACCEPT_UNTRUSTED,
		networking.ServerTLSSettings_OPTIONAL_MUTUAL: tls.CertificateValidationContext_ACCEPT_UNTRUSTED,
		networking.ServerTLSSettings_SIMPLE:          tls.CertificateValidationContext_VERIFY_TRUST_CHAIN,
	} {
		got := clientNames(&networking.ServerTLSSettings{Mode: mode, InsecureSkipVerify: wrapperspb.Bool(true)})
		if got.TrustChainVerification != want {
			t.Errorf("%s: %s, want %s", mode, got.TrustChainVerification, want)
		}
	}
}
