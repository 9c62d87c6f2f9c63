package conformance

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var chosen = flag.String("chosen", "", "names of the tests to run, separated by commas; empty: all")

// TestConformance runs what flags ask for, on the cluster of KUBECONFIG.
func TestConformance(t *testing.T) {
	if *chosen != "" {
		names := strings.Split(*chosen, ",")
		tests.ConformanceTests = slices.DeleteFunc(tests.ConformanceTests, func(c suite.ConformanceTest) bool { return !slices.Contains(names, c.ShortName) })
		if len(tests.ConformanceTests) != len(names) {
			t.Fatalf("not all of %s are there", *chosen)
		}
	}
	conformance.RunConformance(t)
}
