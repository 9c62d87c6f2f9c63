package chart_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// istios is the folder with Istio's own charts, of the version that test/peer pins.
func istios(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "istio.io/istio")
	cmd.Dir = "../peer"
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil {
		t.Fatalf("istio.io/istio: %v %s", err, out)
	}
	return filepath.Join(module.Dir, "manifests/charts")
}

// TestReleaseOfIstiod: the chart stands beside a release of istiod's, and upgrades it to itself:
// Services and accounts are the same objects before and after. A rollback brings istiod back.
func TestReleaseOfIstiod(t *testing.T) {
	need.All(t)
	t.Parallel()
	charts, ours := istios(t), pack(t, "v0.1.0")
	c := kube.Start(t)
	on := func(args ...string) {
		t.Helper()
		if _, err := helm(t, slices.Concat([]string{"--kubeconfig", c.Kubeconfig, "--namespace", namespace}, args)...); err != nil {
			t.Fatal(err)
		}
	}
	is := func(object, path string) string {
		t.Helper()
		return c.Kubectl(t, "-n", namespace, "get", object, "-o", "jsonpath="+path)
	}
	c.Kubectl(t, "create", "namespace", namespace)
	on("install", "base", filepath.Join(charts, "base"))
	on("install", "istiod", filepath.Join(charts, "istio-control/istio-discovery"))
	const pods = "{.spec.template.spec.containers[0].image}"
	theirs := is("deployment/istiod", pods)
	same := func() (ids []string) {
		t.Helper()
		for _, o := range []string{
			"service/istiod", "serviceaccount/istiod", "deployment/istiod",
			"clusterrole/istiod-clusterrole-istio-system", "configmap/istio",
		} {
			ids = append(ids, is(o, "{.metadata.uid}"))
		}
		return ids
	}
	before := same()

	on(slices.Concat([]string{"install", "canary", ours, "--set", "revision=canary"}, named)...)
	if got := is("deployment/istiod", pods); got != theirs {
		t.Errorf("istiod's pods run %s", got)
	}
	if got := is("deployment/istiod-canary", pods); got != image {
		t.Errorf("the revision's pods run %s", got)
	}

	upgrade := slices.Concat([]string{"upgrade", "istiod", ours, "--kubeconfig", c.Kubeconfig, "--namespace", namespace, "--set", "webhooks.enabled=false"},
		named)
	if _, err := helm(t, upgrade...); err == nil || !strings.Contains(err.Error(), "istio-sidecar-injector, which would go") {
		t.Errorf("webhooks would go unasked: %v", err)
	}
	// Whom istiod had the API server believe, it goes on believing: the root stays.
	c.Kubectl(t, "patch", "mutatingwebhookconfiguration", "istio-sidecar-injector", "--type", "json", "-p",
		`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cg=="}]`)
	on(slices.Concat([]string{"upgrade", "istiod", ours}, named)...)
	if got := c.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o",
		"jsonpath={.webhooks[*].clientConfig.caBundle}"); got != "Cg== Cg== Cg== Cg==" {
		t.Errorf("the roots of webhooks are %q", got)
	}
	if got := is("deployment/istiod", pods); got != image {
		t.Errorf("after the upgrade pods run %s", got)
	}
	if after := same(); !slices.Equal(before, after) {
		t.Errorf("objects were made anew: %q, %q", before, after)
	}
	if got := c.Kubectl(t, "get", "mutatingwebhookconfigurations", "-o", "name"); strings.Contains(got, "istio-sidecar-injector") {
		t.Errorf("webhooks that nobody answers are there: %s", got)
	}
	on("rollback", "istiod", "1")
	if got := is("deployment/istiod", pods); got != theirs {
		t.Errorf("after the rollback pods run %s", got)
	}
	if got := c.Kubectl(t, "get", "mutatingwebhookconfigurations", "-o", "name"); !strings.Contains(got, "istio-sidecar-injector") {
		t.Errorf("istiod's webhooks are not back: %s", got)
	}
	if after := same(); !slices.Equal(before, after) {
		t.Errorf("objects were made anew: %q, %q", before, after)
	}
}
