package kube_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// corporate is a mesh of istiod's with a CA that is plugged in: its Secret, and a root of somebody
// else in each namespace.
const corporate = `{apiVersion: v1, kind: Secret, metadata: {name: cacerts, namespace: istio-system}, stringData: {ca-cert.pem: corporate}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-ca-root-cert, namespace: istio-system}, data: {root-cert.pem: corporate}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-ca-root-cert, namespace: shop}, data: {root-cert.pem: corporate}}`

// TestReadOnly: a control plane that only looks writes nothing, though there is an entry that wants
// addresses, an object that is faulty, namespaces without its root, and no CA. All that its user
// asks of the API server are reads, and reviews of tokens.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [another]}, {level: None}]\n")
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-mode", "blocking")
	c.Apply(t, documents(kube.Definitions(t), kube.GatewayAPI(t)))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace, node))
	c.Apply(t, documents(settings("istio", "{}", ""), service, pod("web-1", first), slice("web-1", first),
		secret("east", "east", c.Remote(t, kube.Another)), corporate, accountsOfShop))
	c.Apply(t, entry("outside", "{hosts: [outside.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	c.Apply(t, route("web", "web.example", "", "match: [{uri: {regex: '('}}], "+direct("x")))

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, kube.Another))
	plane := mesh.Start(t, program, "", "--readOnly", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--authPlaintext")
	plane.Ready(t)
	w := &world{cluster: c, plane: plane}
	w.says(t, "k8s://networking.istio.io/VirtualService/shop/web", "spec.http[0].match[0].uri")
	for _, cluster := range []string{"", "east"} {
		if err := ends(login(t, plane, tokenOf(t, c, "cart", ofIstio), cluster), codes.PermissionDenied); err != nil {
			t.Errorf("in the cluster %q: %v", cluster, err)
		}
	}
	for _, of := range []string{"ca", "addresses"} {
		if p := plane.Plugins(t)[of]; p.State != "disabled" || !strings.Contains(p.Off, "--readOnly") {
			t.Errorf("%s is %s: %q", of, p.State, p.Off)
		}
	}
	if out := said(t, plane, "config"); !strings.Contains(out, "these controllers do not run: status, addresses, ingress-status, ca") {
		t.Errorf("coxswain config says\n%s", out)
	}
	if code := plane.Stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	onlyReads(t, log)
	for _, of := range []string{"istio-system", "shop"} {
		if got := c.Kubectl(t, "get", "configmap", "istio-ca-root-cert", "-n", of, "-o", "jsonpath={.data.root-cert\\.pem}"); got != "corporate" {
			t.Errorf("the root in %s is %q", of, got)
		}
	}
}

// said is what a command says of a control plane.
func said(t *testing.T, p *mesh.Plane, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, append(args, "--addr", p.HTTP)...).CombinedOutput()
	if err != nil {
		t.Errorf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

// onlyReads reads an audit log, in which there is nothing but reads and reviews.
func onlyReads(t *testing.T, log string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	reads, reviews := 0, 0
	for line := range bytes.Lines(text) {
		var e struct {
			Verb, RequestURI string
			ObjectRef        struct{ Resource string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case slices.Contains([]string{"get", "list", "watch"}, e.Verb):
			reads++
		case e.Verb == "create" && strings.HasSuffix(e.ObjectRef.Resource, "reviews"):
			reviews++
		default:
			t.Errorf("%s %s", e.Verb, e.RequestURI)
		}
	}
	if reads < 20 || reviews < 2 {
		t.Errorf("%d reads and %d reviews", reads, reviews)
	}
}
