package cluster

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Each setting of a subset's policy takes the place of the rule's, and what it doesn't say is the rule's: also where both say something.
func TestPolicyOfSubset(t *testing.T) {
	for field, c := range map[string]struct {
		rules, subsets string
		of             func(*networking.TrafficPolicy) proto.Message
	}{
		"connectionPool": {`{"tcp": {"maxConnections": 1}}`, `{"tcp": {"maxConnections": 2}}`, func(p *networking.TrafficPolicy) proto.Message { return p.ConnectionPool }},
		"loadBalancer":   {`{"simple": "RANDOM"}`, `{"simple": "ROUND_ROBIN"}`, func(p *networking.TrafficPolicy) proto.Message { return p.LoadBalancer }},
		"outlierDetection": {`{"consecutive5xxErrors": 1}`, `{"consecutive5xxErrors": 2}`,
			func(p *networking.TrafficPolicy) proto.Message { return p.OutlierDetection }},
		"tls":           {`{"mode": "SIMPLE", "sni": "rule"}`, `{"mode": "SIMPLE", "sni": "subset"}`, func(p *networking.TrafficPolicy) proto.Message { return p.Tls }},
		"tunnel":        {`{"targetHost": "rule", "targetPort": 1}`, `{"targetHost": "subset", "targetPort": 2}`, func(p *networking.TrafficPolicy) proto.Message { return p.Tunnel }},
		"proxyProtocol": {`{"version": "V1"}`, `{"version": "V2"}`, func(p *networking.TrafficPolicy) proto.Message { return p.ProxyProtocol }},
		"retryBudget":   {`{"percent": 1}`, `{"percent": 2}`, func(p *networking.TrafficPolicy) proto.Message { return p.RetryBudget }},
	} {
		t.Run(field, func(t *testing.T) {
			policy := func(value string) string {
				if value == "" {
					return "{}"
				}
				return `{"` + field + `": ` + value + `}`
			}
			read := func(value string) proto.Message {
				var p networking.TrafficPolicy
				if err := protojson.Unmarshal([]byte(policy(value)), &p); err != nil {
					t.Fatal(err)
				}
				return c.of(&p)
			}
			for _, both := range [][2]string{{c.rules, ""}, {"", c.subsets}, {c.rules, c.subsets}} {
				var rule networking.DestinationRule
				text := `{"trafficPolicy": ` + policy(both[0]) + `, "subsets": [{"name": "v1", "trafficPolicy": ` + policy(both[1]) + `}]}`
				if err := protojson.Unmarshal([]byte(text), &rule); err != nil {
					t.Fatal(err)
				}
				want := both[1]
				if want == "" {
					want = both[0]
				}
				if got := c.of(PolicyFor(&rule, "v1", 80)); !proto.Equal(got, read(want)) {
					t.Errorf("the rule says %q, its subset %q: %v", both[0], both[1], got)
				}
				if got := c.of(PolicyFor(&rule, "", 80)); both[0] != "" && !proto.Equal(got, read(both[0])) {
					t.Errorf("of no subset: %v", got)
				}
			}
		})
	}
}
