package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const notReady = "cni.istio.io/not-ready"

// TestUntaint: with exactly the rights of untaint.yaml beside those of the set, a node loses its
// taint once the CNI plugin is ready there, be the node or the plugin first, keeps other taints,
// and keeps it where only another namespace's pod of that label is ready; each right is used.
func TestUntaint(t *testing.T) {
	t.Parallel()
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "untaint.yaml"))
	joins := func(name string) {
		t.Helper()
		c.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {taints: [{key: %s, effect: NoSchedule}, "+
			"{key: mine, value: a, effect: NoExecute}]}\n", name, notReady))
	}
	plugin := func(namespace, node string) {
		t.Helper()
		c.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: cni-%[2]s, namespace: %[1]s, labels: {k8s-app: istio-cni-node}}\n"+
			"spec: {nodeName: %[2]s, tolerations: [{operator: Exists}], containers: [{name: cni, image: cni}]}\n", namespace, node))
	}
	ready := func(namespace, node string) {
		t.Helper()
		c.Kubectl(t, "patch", "pod", "cni-"+node, "-n", namespace, "--subresource", "status", "--type", "merge", "-p",
			`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	}
	taints := func(name string) string {
		t.Helper()
		return c.Kubectl(t, "get", "node", name, "-o", "jsonpath={.spec.taints[*].key}")
	}
	loses := func(name string) {
		t.Helper()
		wait.For(t, name+" loses its taint", func() error {
			if now := taints(name); strings.Contains(now, notReady) {
				return errors.New(now)
			}
			return nil
		})
		if now := taints(name); !strings.Contains(now, "mine") {
			t.Errorf("%s keeps %q alone", name, now)
		}
	}
	joins("a")
	joins("b")
	plugin("istio-system", "a")
	plugin("shop", "b")
	ready("shop", "b")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	p := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--untaintNodes")
	p.Ready(t)
	wait.For(t, "it leads", func() error {
		if out := c.Kubectl(t, "get", "configmaps", "-n", "istio-system", "-o", "name"); !strings.Contains(out, "istio-node-untaint") {
			return errors.New(out)
		}
		return nil
	})
	if now := taints("a"); !strings.Contains(now, notReady) {
		t.Errorf("before the plugin is ready the node has %q", now)
	}
	ready("istio-system", "a")
	loses("a")
	plugin("istio-system", "c")
	ready("istio-system", "c")
	joins("c")
	loses("c")
	if now := taints("b"); !strings.Contains(now, notReady) {
		t.Errorf("by another namespace's pod a node lost its taint: %q", now)
	}
	plugin("istio-system", "b")
	ready("istio-system", "b")
	loses("b")

	if code := p.Stop(t); code != 0 { // it gives its lock up
		t.Errorf("it ended with %d", code)
	}
	used, given := asked(t, audit), rightsOf(t, "untaint.yaml")
	for call, code := range used {
		if code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	for right := range given {
		if _, ok := used[right]; !ok {
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) != 3 {
		t.Errorf("%d rights are known", len(given))
	}
}
