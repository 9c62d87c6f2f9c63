package kinds_test

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// TestPlural: objects of all kinds are asked for by the names that their definitions have.
func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Gateway": "gateways", "VirtualService": "virtualservices", "ServiceEntry": "serviceentries", "GatewayClass": "gatewayclasses",
		"AuthorizationPolicy": "authorizationpolicies", "Telemetry": "telemetries", "HTTPRoute": "httproutes", "BackendTLSPolicy": "backendtlspolicies",
	} {
		if got := kinds.Plural(kind); got != want {
			t.Errorf("%s: %s, not %s", kind, got, want)
		}
	}
}
