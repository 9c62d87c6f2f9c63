package schema

import (
	"fmt"
	"strings"
	"testing"
)

// TestOtherTypes: a number in quotes and the number of an enum's value, which protobuf's JSON
// mapping takes, are refused where the schema has a number or a string, as by an API server; zero
// and the first value of an enum, too, which the message has either way.
func TestOtherTypes(t *testing.T) {
	const service = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: b}\nspec: {hosts: [a], http: [{%s}]}\n"
	const policy = "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: a, namespace: b}\nspec: {mtls: {mode: %s}}\n"
	const rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a, namespace: b}\n" +
		"spec: {host: a, trafficPolicy: {outlierDetection: {consecutive5xxErrors: %s}}}\n"
	route, integer := "route: [{destination: {host: a}}], ", "must be of type integer"
	set := New()
	for _, c := range []struct{ form, value, want string }{
		{service, route + `retries: {attempts: "3"}`, integer},
		{service, route + `retries: {attempts: "0"}`, integer},
		{service, route + "retries: {attempts: 3}", ""},
		{service, `route: [{destination: {host: a, port: {number: "80"}}}]`, integer},
		{service, `route: [{destination: {host: a}, weight: "100"}]`, integer},
		{service, `fault: {abort: {httpStatus: "500", percentage: {value: 1}}}, ` + route, integer},
		{service, `fault: {abort: {httpStatus: 500, percentage: {value: "1.5"}}}, ` + route, "must be of type number"},
		{service, `fault: {abort: {httpStatus: 500, percentage: {value: 1.5}}}, ` + route, ""},
		{rule, `"5"`, integer},
		{rule, "5", ""},
		{policy, "3", "Unsupported value: 3"},
		{policy, "0", "Unsupported value: 0"},
		{policy, "STRICT", ""},
	} {
		text := fmt.Sprintf(c.form, c.value)
		row, faults := readHere(set, []byte(text))
		said := fmt.Sprint(faults)
		if (row != nil) != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%v, not %q, of\n%s", said, c.want, text)
		}
	}
}
