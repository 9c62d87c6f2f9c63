package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shop is a copy of examples/expectations with texts replaced, each as FILE: OLD -> NEW.
func shop(t *testing.T, changes ...[3]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/expectations")); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		file := filepath.Join(dir, c[0])
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), c[1]) {
			t.Fatalf("%s lacks %q: %v", c[0], c[1], err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), c[1], c[2], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func played(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"test"}, args...), os.Environ(), strings.NewReader(""), &o, &e)
	return code, o.String() + e.String()
}

// TestExpectations: the example is as expected, and its expectations touch all rules.
func TestExpectations(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.xml")
	code, out := played(t, "../../examples/expectations", "--all-rules", "--junit", report)
	if code != 0 || !strings.Contains(out, "11 passed, 0 failed\nall 10 rules are touched\n") || strings.Contains(out, "warning") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(text, &suites); err != nil || len(suites.Suites) != 1 || suites.Suites[0].Tests != 11 || suites.Suites[0].Failures != 0 {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestExpectationsFail: each edit of the resources makes the expectation fail that is about it, and
// the way is shown.
func TestExpectationsFail(t *testing.T) {
	const routes, policies, file = "config/routes.yaml", "config/policies.yaml", "expectations.yaml"
	dir := shop(t,
		[3]string{routes, "weight: 90", "weight: 60"}, [3]string{routes, "weight: 10", "weight: 40"},
		[3]string{routes, "timeout: 2s", "timeout: 3s"},
		[3]string{routes, "redirectCode: 301", "redirectCode: 302"},
		[3]string{routes, `{exact: "yes"}`, `{exact: "no"}`},
		[3]string{policies, "action: DENY", "action: AUDIT"},
		[3]string{policies, "sa/web, cluster.local/ns/edge", "sa/web, cluster.local/ns/other/sa/stranger, cluster.local/ns/edge"},
		[3]string{"config/shop.yaml", "mode: STRICT", "mode: PERMISSIVE"},
		[3]string{routes, "rewrite: {uri: /}", "rewrite: {uri: /cart}"},
	)
	report := filepath.Join(t.TempDir(), "report.xml")
	code, out := played(t, dir, "--junit", report)
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"FAIL  a tenth of carts is served by v2", "want: 90 % to cart.shop.svc.cluster.local:80 subset v1; got: 60 %", "want: timeout 2s; got: 3s",
		"FAIL  testers get v2", "60 % goes to outbound|80|v1|cart.shop.svc.cluster.local, which is not expected",
		"FAIL  old links lead to the new ones", "want: status 301; got: status 302, answered by the proxy of web",
		"FAIL  nobody deletes a cart", "FAIL  strangers see no cart", "want: a policy refuses it; got: forwarded by the proxy of cart-v1",
		"FAIL  who shows no certificate is not let in",
		"FAIL  from outside, carts are below /cart", "want: path / arrives; got: /cart",
		"the way through the proxy of cart-v1:", "rule[0] allows it", "4 passed, 7 failed",
		"header x-tester = no", "rules are touched by no expectation:", filepath.Join(dir, routes) + ":",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(report)
	var suites junitSuites
	if err == nil {
		err = xml.Unmarshal(text, &suites)
	}
	if err != nil || len(suites.Suites) != 1 || suites.Suites[0].Failures != 7 {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestExpectationsOfWhatIsRefused: an object that isn't served fails the run though no request is
// about it, and so does a rule that none touches where that is asked.
func TestExpectationsOfWhatIsRefused(t *testing.T) {
	dir := shop(t, [3]string{"config/policies.yaml", "action: DENY", "action: NEVER"})
	if code, out := played(t, dir, "--run", "testers"); code != 1 || !strings.Contains(out, "nobody-deletes is not served here") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	more := shop(t, [3]string{"config/routes.yaml", "  http:\n", "  http:\n  - {match: [{uri: {exact: /new}}], directResponse: {status: 200}}\n"})
	if code, out := played(t, more); code != 0 ||
		!strings.Contains(out, "1 of 11 rules are touched by no expectation:\n  VirtualService shop/cart  route path /new") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := played(t, more, "--all-rules"); code != 1 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestExpectationsCantBePlayed: that ends with 2.
func TestExpectationsCantBePlayed(t *testing.T) {
	for _, c := range []struct {
		change [3]string
		args   []string
		want   string
	}{
		{args: []string{"--run", "nowhere to be found"}, want: "no expectation's name contains"},
		{args: []string{"-o", "xml"}, want: "--output is table"},
		{args: []string{"--run", "a", "--all-rules"}, want: "leave --run out"},
		{change: [3]string{"expectations.yaml", "config: config", "config: nowhere"}, want: "nowhere: no such file"},
		{change: [3]string{"expectations.yaml", "url: http://shop.example/cart", "url: shop.example/cart"}, want: ":41: request: "},
		{change: [3]string{"expectations.yaml", "ip: 10.0.0.1", "address: 10.0.0.1"}, want: "workloads.web.address"},
	} {
		var dir string
		if c.change[0] == "" {
			dir = shop(t)
		} else {
			dir = shop(t, c.change)
		}
		if code, out := played(t, append(c.args, dir)...); code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("exit code %d, want %q:\n%s", code, c.want, out)
		}
	}
	empty := filepath.Join(t.TempDir(), "expectations.yaml")
	if err := os.WriteFile(empty, []byte("config: .\nworkloads: {web: {ip: 10.0.0.1}}\nexpectations: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := played(t, empty); code != 2 || !strings.Contains(out, empty+" has no expectations; ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := played(t, t.TempDir()); code != 2 || !strings.Contains(out, "has no file that is named expectations.yaml") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestExpectationsOfRoutes: rules, ways and reports name the HTTPRoutes that people wrote,
// where one VirtualService is made of two of them and two are made of one.
func TestExpectationsOfRoutes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config/edge.yaml": `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec:
  gatewayClassName: istio
  addresses: [{type: Hostname, value: gw.edge.svc.cluster.local}]
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: edge}
spec:
  parentRefs: [{name: edge}]
  hostnames: [front.example, two.example]
  rules:
  - matches: [{path: {value: /a}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: a.example}}]
  - matches: [{path: {value: /b}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: later.one, namespace: edge}
spec:
  parentRefs: [{name: edge}]
  hostnames: [front.example]
  rules:
  - matches: [{path: {value: /c}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: c.example}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: gw, namespace: edge}
spec:
  hosts: [gw.edge.svc.cluster.local]
  ports: [{number: 80, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  workloadSelector: {labels: {app: gw}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: gw, namespace: edge}
spec: {address: 10.0.0.9, labels: {app: gw}}
`,
		"expectations.yaml": `config: config
workloads:
  gw: {type: router, namespace: edge, ip: 10.0.0.9, labels: {app: gw}}
expectations:
- name: a leads elsewhere
  request: {at: gw, url: http://front.example/a}
  expect: {answer: {status: 302}}
- name: c is what it is not
  request: {at: gw, url: http://front.example/c}
  expect: {answer: {status: 200}}
`,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	report, edge := filepath.Join(dir, "report.xml"), filepath.Join(dir, "config/edge.yaml")
	code, out := played(t, dir, "-o", "wide", "--junit", report)
	xml, err := os.ReadFile(report)
	if code != 1 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, want := range []string{
		"from HTTPRoute edge/front (" + edge + ":14:1)", "from HTTPRoute edge/later.one (" + edge + ":26:1)",
		"1 of 3 rules are touched", "HTTPRoute edge/later.one  route edge.later.one.0: path prefix /c  touched  " + edge + ":26:1",
		"HTTPRoute edge/front      route edge.front.1: path prefix /b      no       " + edge + ":14:1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if all := out + string(xml); strings.Contains(all, "autogenerated") || !strings.Contains(string(xml), "from HTTPRoute edge/later.one") {
		t.Errorf("%s\n%s", out, xml)
	}
}
