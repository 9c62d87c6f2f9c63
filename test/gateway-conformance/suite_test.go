package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

// TestConformance runs what flags ask for, on the cluster of KUBECONFIG.
func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
