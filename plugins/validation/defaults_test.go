package validation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// TestDefaulted: what the schemas say of fields that are left out is in the row, also where one is
// null. Without Defaulted it is not, and nothing else is added.
func TestDefaulted(t *testing.T) {
	for name, c := range map[string]struct{ object, want string }{
		"redirect": {
			`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a}, spec: {rules: [{matches: [{headers: [{name: a, value: b}]}], ` +
				`filters: [{type: RequestRedirect, requestRedirect: {statusCode: null}}]}]}}`,
			`{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"},"headers":[{"type":"Exact","name":"a","value":"b"}]}],` +
				`"filters":[{"type":"RequestRedirect","requestRedirect":{"statusCode":302}}]}]}`,
		},
		"older version": {
			`{apiVersion: gateway.networking.k8s.io/v1beta1, kind: HTTPRoute, metadata: {name: a}, spec: {rules: [{backendRefs: [{name: a, port: 80}]}]}}`,
			`{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],` +
				`"backendRefs":[{"group":"","kind":"Service","name":"a","port":80,"weight":1}]}]}`,
		},
		"method": {
			`{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: a}, spec: {rules: [{matches: [{method: {service: a}}]}]}}`,
			`{"rules":[{"matches":[{"method":{"type":"Exact","service":"a"}}]}]}`,
		},
		"listener": {
			`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: a, listeners: ` +
				`[{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}]}}`,
			`{"gatewayClassName":"a","listeners":[{"name":"a","port":443,"protocol":"HTTPS","tls":{"mode":"Terminate","certificateRefs":` +
				`[{"group":"","kind":"Secret","name":"a"}]},"allowedRoutes":{"namespaces":{"from":"Same"}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			checker := New()
			for _, reader := range []kinds.Reader{
				{Check: checker.Check, Gateways: true}, {Check: checker.Check, Defaulted: checker.Defaulted, Gateways: true},
			} {
				docs := reader.Read("a.yaml", []byte(c.object))
				if len(docs) != 1 || docs[0].Row == nil {
					t.Fatal(docs)
				}
				got, want := tree(t, string(docs[0].Row.Payload)), tree(t, c.want)
				if (got == want) != (reader.Defaulted != nil) {
					t.Errorf("%s\nwanted\n%s", got, want)
				}
			}
		})
	}
}

// tree is JSON with its keys in order.
func tree(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
