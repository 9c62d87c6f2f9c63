package kinds_test

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

// TestIngress: what an API server refuses of an Ingress is refused here, at its place, and nothing
// else is.
func TestIngress(t *testing.T) {
	reader := kinds.Reader{Check: validation.New().Check, Gateways: true}
	const path = "{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}"
	with := func(old, now string) string {
		return "rules: [{host: a.example, http: {paths: [" + strings.Replace(path, old, now, 1) + "]}}]"
	}
	right := with("", "")
	try := func(name, spec string) []kinds.Document {
		docs := reader.Read("a.yaml", []byte("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: tried, namespace: shop}\nspec: {"+spec+"}\n"))
		if len(docs) != 1 || docs[0].Key() != "shop/tried" {
			t.Fatal(name, docs)
		}
		return docs
	}
	for name, spec := range map[string]string{
		"right": right, "a default": "defaultBackend: {service: {name: web, port: {name: http}}}",
		"no path, ours":   with("path: /, pathType: Prefix", "pathType: ImplementationSpecific"),
		"dots in a name":  with("path: /", "path: /a..b/.c"),
		"odd paths, ours": with("path: /, pathType: Prefix", "path: /a//..%2F/.*, pathType: ImplementationSpecific"),
		"a port's name":   with("number: 80", "name: http-1"),
		"a resource":      with("service: {name: web, port: {number: 80}}", "resource: {apiGroup: a.example, kind: Bucket, name: b}"),
		"a host alone":    "rules: [{host: a.example}]", "a star": "rules: [{host: '*.example'}]",
		"TLS":       right + ", tls: [{hosts: [a.example, '*.b.example'], secretName: a}]",
		"no secret": right + ", tls: [{hosts: [a.example]}]", "a class": right + ", ingressClassName: mesh.example",
	} {
		if d := try(name, spec)[0]; d.Row == nil || len(d.Faults) > 0 {
			t.Errorf("%s: %v", name, d.Faults)
		}
	}
	for name, spec := range map[string]string{
		"nothing: spec": "", "no rules: spec": "rules: []", "no path type: pathType": with("pathType: Prefix, ", ""),
		"an unknown type: pathType": with("Prefix", "Regex"),
		"a relative path: path":     with("path: /", "path: a"), "no path: path": with("path: /, ", ""),
		"a relative path, ours: path": with("path: /, pathType: Prefix", "path: a, pathType: ImplementationSpecific"),
		"two slashes: path":           with("path: /", "path: /a//b"),
		"dots: path":                  with("path: /", "path: /a/../b"), "a dot: path": with("path: /", "path: /a/./b"),
		"dots at the end: path":  with("path: /", "path: /a/.."),
		"an escaped slash: path": with("path: /", "path: /a%2fb"), "no backend: backend": with(", backend: {service: {name: web, port: {number: 80}}}", ""),
		"an empty backend: backend": with("{service: {name: web, port: {number: 80}}}", "{}"),
		"no port: service":          with(", port: {number: 80}", ""), "port 0: service": with("80", "0"),
		"port 70000: port": with("80", "70000"), "both ports: port": with("number: 80", "number: 80, name: http"),
		"a long name: port.name":        with("number: 80", "name: abcdefghijklmnop"),
		"a number as a name: port.name": with("number: 80", `name: "80"`), "a service's name: service.name": with("name: web", "name: Web"),
		"both: backend":    with("service: {", "resource: {apiGroup: a.example, kind: Bucket, name: b}, service: {"),
		"an address: host": "rules: [{host: 10.0.0.1}]", "a star alone: host": "rules: [{host: '*'}]",
		"capitals: host": "rules: [{host: A.example}]", "no paths: paths": "rules: [{http: {paths: []}}]",
		"a bad secret: secretName":      right + ", tls: [{secretName: A}]",
		"a bad class: ingressClassName": right + ", ingressClassName: Mesh", "a text: number": with("80", `"80"`),
	} {
		name, field, _ := strings.Cut(name, ": ")
		d := try(name, spec)[0]
		if d.Row != nil || len(d.Faults) == 0 || !strings.Contains(d.Faults[0].Field, field) || d.Faults[0].Line == 0 {
			t.Errorf("%s: %v", name, d.Faults)
		}
	}
}
