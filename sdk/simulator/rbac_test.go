package simulator

import (
	"net/http"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
)

// TestPolicies: one policy, with a permission and a principal, of a request GET /a?b to 10.0.0.1:80
// for a.example.
func TestPolicies(t *testing.T) {
	anyone := `{"any": true}`
	conn := Connection{
		Source: addr("10.1.2.3:40000"), Destination: addr("10.0.0.1:80"),
		TLS: &TLS{SNI: "a.example", Peer: &Identity{URIs: []string{"spiffe://x/ns/a/sa/b"}, DNS: []string{"b.example"}}},
	}
	for name, c := range map[string]struct {
		permission, principal string
		want                  bool
	}{
		"anything":     {anyone, anyone, true},
		"port":         {`{"destinationPort": 80}`, anyone, true},
		"another port": {`{"destinationPort": 81}`, anyone, false},
		"ports":        {`{"destinationPortRange": {"start": 79, "end": 80}}`, anyone, false},
		"address":      {`{"destinationIp": {"addressPrefix": "10.0.0.0", "prefixLen": 8}}`, anyone, true},
		"path":         {`{"urlPath": {"path": {"exact": "/a"}}}`, anyone, true},
		"header":       {`{"header": {"name": ":method", "stringMatch": {"exact": "POST"}}}`, anyone, false},
		"not":          {`{"notRule": {"header": {"name": ":method", "stringMatch": {"exact": "POST"}}}}`, anyone, true},
		"all":          {`{"andRules": {"rules": [{"any": true}, {"destinationPort": 81}]}}`, anyone, false},
		"one":          {`{"orRules": {"rules": [{"destinationPort": 81}, {"any": true}]}}`, anyone, true},
		"server":       {`{"requestedServerName": {"suffix": ".example"}}`, anyone, true},
		"metadata":     {`{"metadata": {"filter": "f", "path": [{"key": "k"}], "value": {"stringMatch": {"exact": "v"}}}}`, anyone, true},
		"metadata's list": {
			`{"metadata": {"filter": "f", "path": [{"key": "list"}], "value": {"listMatch": {"oneOf": {"stringMatch": {"exact": "two"}}}}}}`,
			anyone, true,
		},
		"name":                 {anyone, `{"authenticated": {"principalName": {"exact": "spiffe://x/ns/a/sa/b"}}}`, true},
		"the first kind alone": {anyone, `{"authenticated": {"principalName": {"exact": "b.example"}}}`, false},
		"anybody with TLS":     {anyone, `{"authenticated": {}}`, true},
		"source":               {anyone, `{"directRemoteIp": {"addressPrefix": "10.1.0.0", "prefixLen": 16}}`, true},
		"origin":               {anyone, `{"remoteIp": {"addressPrefix": "10.1.0.0", "prefixLen": 16}}`, false},
		"nobody":               {anyone, `{"notId": {"any": true}}`, false},
		"both":                 {anyone, `{"andIds": {"ids": [{"any": true}, {"header": {"name": "x", "presentMatch": true}}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rbacconfigv3.RBAC{}
			if err := protojson.Unmarshal([]byte(`{"policies": {"p": {"permissions": [`+c.permission+`], "principals": [`+c.principal+`]}}}`), r); err != nil {
				t.Fatal(err)
			}
			w := &walk{
				Config: &Config{}, connection: conn, local: conn.Destination, out: &Outcome{},
				stream: newStream(Request{Host: "a.example", Path: "/a?b"}, conn),
			}
			w.sni, w.stream.remote = "a.example", addr("192.0.2.9:1").Addr()
			w.stream.metadata.put("f", "k", "v")
			w.stream.metadata.put("f", "list", []any{"one", "two"})
			for action, want := range map[rbacconfigv3.RBAC_Action]bool{
				rbacconfigv3.RBAC_ALLOW: !c.want, rbacconfigv3.RBAC_DENY: c.want, rbacconfigv3.RBAC_LOG: false,
			} {
				r.Action = action
				if got, _ := w.denies(r); got != want {
					t.Errorf("%s: denied %v", action, got)
				}
			}
		})
	}
}

// TestNoPolicies: ALLOW without policies denies, no rules at all don't.
func TestNoPolicies(t *testing.T) {
	w := &walk{Config: &Config{}, out: &Outcome{}, stream: newStream(Request{Header: http.Header{}}, Connection{})}
	if denied, _ := w.denies(&rbacconfigv3.RBAC{}); !denied {
		t.Error("ALLOW without policies lets through")
	}
	if denied, _ := w.denies(nil); denied {
		t.Error("no rules deny")
	}
}
