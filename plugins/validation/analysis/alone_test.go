package analysis

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"
)

// TestAlone: which rules of a VirtualService nothing is left for, by what their matches say; and
// that an EnvoyFilter is warned of unless its annotation says that its author knows.
func TestAlone(t *testing.T) {
	for spec, want := range map[string]string{
		"http: [{}, {match: [{uri: {prefix: /api}}]}]":                                  "spec.http[1]",
		"http: [{}, {match: [{uri: {prefix: /api}, withoutHeaders: {a: {exact: b}}}]}]": "spec.http[1]",
		"http: [{match: [{uri: {prefix: /api}}]}, {}]":                                  "",
		"http: [{}, {}]": "spec.http[1]",
		"http: [{name: all}, {name: late, match: [{uri: {exact: /}}]}]":                                                   "spec.http[1]",
		"http: [{match: [{uri: {prefix: /a}}, {uri: {prefix: /a/b}}]}]":                                                   "spec.http[0].match[1]",
		"http: [{match: [{uri: {prefix: /a}}, {uri: {exact: /a}}]}]":                                                      "",
		"http: [{match: [{uri: {prefix: /a}}]}, {match: [{name: again, uri: {prefix: /a}}]}]":                             "spec.http[1].match[0] spec.http[1]",
		"http: [{match: [{uri: {prefix: /a}}]}, {match: [{uri: {prefix: /b}}, {uri: {exact: /a/c}}]}]":                    "spec.http[1].match[1]",
		"http: [{match: [{uri: {prefix: /a}, method: {exact: GET}}]}, {match: [{uri: {prefix: /a}}]}]":                    "",
		"http: [{match: [{headers: {v: {exact: a}}}]}, {match: [{headers: {v: {exact: b}}}]}]":                            "",
		"http: [{match: [{headers: {v: {exact: a}}}]}, {match: [{headers: {v: {exact: a}, w: {exact: a}}}]}]":             "spec.http[1].match[0]",
		"tls: [{match: [{sniHosts: [a.x]}]}, {match: [{sniHosts: [A.x]}]}]":                                               "spec.tls[1].match[0] spec.tls[1]",
		"tls: [{match: [{sniHosts: ['*.x']}]}, {match: [{sniHosts: [a.x, '*.b.x']}]}]":                                    "spec.tls[1].match[0]",
		"tls: [{match: [{sniHosts: ['*.x']}]}, {match: [{sniHosts: [x]}]}]":                                               "",
		"tls: [{match: [{sniHosts: [a.x]}]}, {match: [{sniHosts: ['*.x']}]}]":                                             "",
		"tls: [{match: [{sniHosts: [a.x], port: 1}]}, {match: [{sniHosts: [a.x], port: 2}, {sniHosts: [a.x], port: 1}]}]": "spec.tls[1].match[1]",
		"tcp: [{}, {match: [{port: 1}]}]":                                                                                 "spec.tcp[1]",
		"tcp: [{match: [{port: 1}]}, {match: [{port: 1, sourceLabels: {a: b}}]}, {}]":                                     "spec.tcp[1].match[0]",
		"tcp: [{match: [{port: 1, sourceLabels: {a: b}}]}, {match: [{port: 1}]}]":                                         "",
		"tcp: [{match: [{destinationSubnets: [10.0.0.0/8]}]}, {match: [{destinationSubnets: [10.0.0.0/8], port: 2}]}]":    "spec.tcp[1].match[0]",
		"tcp: [{match: [{destinationSubnets: [10.0.0.0/8]}]}, {match: [{port: 2}]}]":                                      "",
		"tcp: [{match: [{sourceSubnet: 10.0.0.0/8}]}, {match: [{port: 2}]}]":                                              "",
	} {
		v := &networking.VirtualService{}
		if err := yaml.Unmarshal([]byte(spec), v); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		var fields []string
		for _, f := range Alone(finding.Resource{Kind: "VirtualService", Spec: v}) {
			if f.Severity == finding.Error {
				t.Errorf("%s: an error: %v", spec, f)
			}
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s: said of %q, want %q", spec, got, want)
		}
	}
	filter := finding.Resource{Kind: "EnvoyFilter", Spec: &networking.EnvoyFilter{}}
	if found := Alone(filter); len(found) != 1 || found[0].Code != caution || found[0].Severity != finding.Warning {
		t.Errorf("of an EnvoyFilter it says %v", found)
	}
	filter.Annotations = map[string]string{suppression: "IST0130, IST0133"}
	if found := Alone(filter); len(found) > 0 {
		t.Errorf("though it is not to be told it says %v", found)
	}
}
