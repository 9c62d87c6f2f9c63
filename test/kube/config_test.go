package kube_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// definitions are the custom resource definitions of Istio's API, by kind.
func definitions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for d := range strings.SplitSeq(kube.Definitions(t), "\n---\n") {
		_, rest, ok := strings.Cut(d, "\n    kind: ")
		if kind, _, _ := strings.Cut(rest, "\n"); ok {
			out[kind] = d
		}
	}
	if len(out) != 15 {
		t.Fatalf("%d definitions", len(out))
	}
	return out
}

// route is a VirtualService of the gateway whose every request is answered directly.
func route(name, host, extra, answer string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: shop%s}
spec: {hosts: [%s], gateways: [edge], http: [{%s}]}`, name, extra, host, answer)
}

func direct(text string) string {
	return fmt.Sprintf("directResponse: {status: 200, body: {string: %s}}", text)
}

// TestConfigOfACluster: an Envoy follows Istio's resources of an API server that has no definition
// of them at first: made, changed, mistaken, of another revision, unreachable, and all of a kind
// lost with its definition.
func TestConfigOfACluster(t *testing.T) {
	envoy.Binary(t) // or skip
	crds, c := definitions(t), kube.Start(t)
	c.Apply(t, namespace)
	w := newPlane(t, c, t.TempDir(), "{name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %q, revision: blue}}")

	edge, _, _ := strings.Cut(gateway, "---")
	for kind, d := range crds {
		if kind != "VirtualService" {
			c.Apply(t, d)
		}
	}
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, edge)
	w.answers(t, http.StatusNotFound, "") // one missing kind holds nobody else
	c.Apply(t, crds["VirtualService"])
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	web := func(extra, answer string) { c.Apply(t, route("web", `"*"`, extra, answer)) }
	web("", direct("one"))
	c.Apply(t, documents(route("a", "a.example", "", direct("a")), route("b", "b.example", "", direct("b"))))
	w.answers(t, http.StatusOK, "one")
	web("", direct("two"))
	w.answers(t, http.StatusOK, "two")

	// What only istiod's webhook would have refused: the last good version stays, and the reason is
	// shown until it is mended.
	web("", "match: [{uri: {regex: '('}}], "+direct("three"))
	w.says(t, "k8s://networking.istio.io/VirtualService/shop/web", "spec.http[0].match[0].uri")
	w.always(t, "two")
	web("", direct("four"))
	w.always(t, "four")

	web(", labels: {istio.io/rev: green}", direct("five"))
	w.answers(t, http.StatusNotFound, "")
	web(", labels: {istio.io/rev: blue}", direct("six"))
	w.always(t, "six")

	c.Down()
	w.always(t, "six")
	c.Up(t)
	web(", labels: {istio.io/rev: blue}", direct("seven"))
	w.always(t, "seven")

	// All VirtualServices go at once: that is held.
	c.Kubectl(t, "delete", "crd", "virtualservices.networking.istio.io")
	w.says(t, "coxswain hold show crds")
	w.always(t, "seven")
	c.Apply(t, crds["VirtualService"])
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	web("", direct("eight"))
	c.Apply(t, documents(route("a", "a.example", "", direct("a")), route("b", "b.example", "", direct("b"))))
	w.always(t, "eight")
}

// says waits until `coxswain config` has all words in a line.
func (w *world) says(t *testing.T, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("coxswain config says %q", words), func() error {
		out, _ := exec.Command(program, "config", "--addr", w.plane.HTTP).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found {
				return nil
			}
		}
		return fmt.Errorf("it says:\n%s", out)
	})
}
