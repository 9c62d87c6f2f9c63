package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// hooksSet is a set with webhooks alone.
const hooksSet = `plugins:
  - {name: crds, kind: config, builtin: config/kubernetes}
  - {name: ca, kind: controller, builtin: controller/ca, config: {keep: secret}}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: injector
    kind: controller
    builtin: controller/injector
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [%[1]s], nativeSidecars: "false"}
  - name: validator
    kind: controller
    builtin: controller/validator
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [%[2]s]}
`

const bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {%s}}\nspec: {serviceAccountName: " +
	"default, containers: [{name: app, image: app}]}\n"

// TestWebhooks: pods that are created come back with a proxy, by the label of their namespace and
// by revision; a resource that is wrong is refused, once that was seen to work; of templates the
// last good ones count; and without the control plane what is to be created elsewhere is created.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: bank, labels: {istio.io/rev: default}}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: plain}\n"))
	dir, at := t.TempDir(), wait.Address(t)
	file := filepath.Join(dir, "plugins.yaml")
	put(t, file, fmt.Sprintf(hooksSet, "coxswain-injector", "coxswain-validator, coxswain-validator-canary"))
	p := mesh.Start(t, program, "", "--plugins", file, "--kubeconfig", c.Kubeconfig, "--httpsAddr", at, "--istiodCustomHost", "localhost")
	_, port, _ := strings.Cut(at, ":")
	c.Apply(t, documents(printed(t, "https://localhost:"+port), printed(t, "https://localhost:"+port, "--revision", "canary")))
	p.Ready(t)

	injected := func(name, namespace, labels string) error {
		if out, err := applied(t, c, fmt.Sprintf(bare, name, namespace, labels)); err != nil {
			return errors.New(out)
		}
		out := c.Kubectl(t, "get", "pod", name, "-n", namespace, "-o", "jsonpath={.spec.containers[*].name} {.spec.initContainers[*].name}")
		c.Kubectl(t, "delete", "pod", name, "-n", namespace, "--grace-period", "0", "--force")
		if out != "app istio-proxy istio-init" {
			return errors.New("it has " + out)
		}
		return nil
	}
	wait.For(t, "a pod is injected into by its namespace's label", func() error { return injected("web", "shop", "app: web") })
	if err := injected("web", "bank", "app: web"); err != nil {
		t.Errorf("by revision: %v", err)
	}
	if err := injected("web", "plain", "app: web"); err == nil {
		t.Error("a pod of a namespace without a label is injected into")
	}
	if err := injected("own", "plain", `sidecar.istio.io/inject: "true"`); err != nil {
		t.Errorf("by its own label: %v", err)
	}
	if err := injected("not", "shop", `sidecar.istio.io/inject: "false"`); err == nil {
		t.Error("a pod that refuses is injected into")
	}

	wait.For(t, "what can't be judged is refused", func() error {
		for _, name := range []string{"coxswain-validator", "coxswain-validator-canary"} { // the second is asked about objects with a label
			if out := c.Kubectl(t, "get", "validatingwebhookconfiguration", name, "-o",
				"jsonpath={.webhooks[*].failurePolicy}"); strings.Trim(out, "Fail ") != "" || out == "" {
				return errors.New("the policy of " + name + " is " + out)
			}
		}
		return nil
	})
	if out, err := applied(
		t, c,
		"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: bad, namespace: shop}\nspec: {hosts: [a]}\n",
	); err == nil || !strings.Contains(out, "http, tcp or tls must be provided") {
		t.Errorf("a bad VirtualService: %s", out)
	}
	c.Kubectl(t, "patch", "mutatingwebhookconfiguration", "coxswain-injector", "--type", "json", "-p",
		`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
	wait.For(t, "the root comes back", func() error {
		if out := c.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}"); out == "" {
			return errors.New("it is away")
		}
		return nil
	})

	breaksTemplates(t, c, p)
	p.Kill()
	c.Apply(t, fmt.Sprintf(bare, "alone", "istio-system", `istio-injection: enabled, sidecar.istio.io/inject: "true"`))
	c.Apply(t, fmt.Sprintf(bare, "alone", "kube-system", `sidecar.istio.io/inject: "true"`))
	c.Apply(t, fmt.Sprintf(bare, "alone", "plain", "app: web"))
}

// templates is the ConfigMap with a template for sidecars.
const templates = `apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector, namespace: istio-system}
data:
  config: |
    policy: enabled
    templates:
      sidecar: "metadata: {labels: {of: %s}}\nspec: {containers: [{name: istio-proxy, image: proxy}]}"
`

// breaksTemplates changes the templates to good ones, broken ones and good ones: pods get a proxy
// all the while, by the last good ones, and `coxswain config` says what is wrong.
func breaksTemplates(t *testing.T, c *kube.Cluster, p *mesh.Plane) {
	t.Helper()
	client := c.Client(t)
	by := func(want string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: "shop"},
			Spec: corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app",
				Image: "app"}}},
		}
		is, err := client.CoreV1().Pods("shop").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && (is.Labels["of"] != want || len(is.Spec.Containers) != 2) {
			err = fmt.Errorf("it has labels %v and %d containers", is.Labels, len(is.Spec.Containers))
		}
		return err
	}
	said := func() string {
		out, _ := exec.Command(program, "config", "--addr", p.HTTP).CombinedOutput() // fails where there are faults
		return string(out)
	}
	const place, wrong = "ConfigMap istio-system/istio-sidecar-injector", "templates: sidecar"
	c.Apply(t, fmt.Sprintf(templates, "first"))
	wait.For(t, "the template counts", func() error { return by("first") })
	for what, text := range map[string]string{"a template": "{{ if }}", "what calls a function that there isn't": "{{ nosuch 1 }}"} {
		c.Apply(t, fmt.Sprintf(templates, text))
		wait.For(t, "`coxswain config` says that "+what+" is broken", func() error {
			if text := said(); !strings.Contains(text, place) || !strings.Contains(text, wrong) {
				return errors.New(text)
			}
			return nil
		})
		if err := by("first"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.Apply(t, fmt.Sprintf(templates, "second"))
	wait.For(t, "the mended template counts", func() error { return by("second") })
	wait.For(t, "nothing is wrong", func() error {
		if text := said(); strings.Contains(text, place) {
			return errors.New(text)
		}
		return nil
	})
}

// printed are the configurations that the command prints.
func printed(t *testing.T, url string, flags ...string) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"webhooks", "--url", url}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// applied is what kubectl says of an object.
func applied(t *testing.T, c *kube.Cluster, object string) (said string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	put(t, file, object)
	out, err := exec.Command(filepath.Join(kube.Programs(t), "kubectl"), "--kubeconfig", c.Kubeconfig, "apply", "-f", file).CombinedOutput()
	return string(out), err
}
