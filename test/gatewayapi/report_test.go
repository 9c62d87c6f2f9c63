package gatewayapi

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const reported = `
gatewayAPIVersion: v1.6.0
gatewayAPIChannel: experimental
profiles:
- name: GATEWAY-TLS
  core: {result: success, statistics: {Failed: 0, Passed: 20, Skipped: 3}}
- name: GATEWAY-HTTP
  core: {result: failure, failedTests: [HTTPRouteWeight], statistics: {Failed: 1, Passed: 36, Skipped: 0}}
  extended:
    result: failure
    failedTests: [HTTPRouteCORS, HTTPRouteWeight]
    statistics: {Failed: 2, Passed: 52, Skipped: 1}
    unsupportedFeatures: [UDPRoute]
`

// TestReport: the document has every number of the suite's report, and who failed.
func TestReport(t *testing.T) {
	var r report
	if err := yaml.Unmarshal([]byte(reported), &r); err != nil {
		t.Fatal(err)
	}
	const want = `
API v1.6.0, channel experimental.

| profile | core: passed, skipped, failed | extended: passed, skipped, failed | not claimed |
|---|---|---|---|
| GATEWAY-HTTP | 36, 0, 1 | 52, 1, 2 | UDPRoute |
| GATEWAY-TLS | 20, 3, 0 | 0, 0, 0 |  |

Failed: HTTPRouteCORS, HTTPRouteWeight.
`
	if got := r.String(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s, want %s", got, want)
	}
}
