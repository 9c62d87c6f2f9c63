package chart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestLives: the chart as it is packed is installed as README says, upgraded, rolled back and
// uninstalled on a real API server. The control plane runs with the arguments that its pods have,
// as their account. What users wrote lives on.
func TestLives(t *testing.T) {
	t.Parallel()
	older, newer := pack(t, "v0.1.0"), pack(t, "v0.2.0")
	c := kube.Start(t)
	on := func(args ...string) string {
		t.Helper()
		out, err := helm(t, slices.Concat([]string{"--kubeconfig", c.Kubeconfig, "--namespace", namespace}, args)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// Definitions are made first: what is checked is made of them.
	if out := on(slices.Concat([]string{"install", "istiod", older, "--dry-run=server"}, named)...); !strings.Contains(out, "kind: Deployment") {
		t.Errorf("a trial says %s", out)
	}
	if _, err := helm(t, append(command(t, older), "--kubeconfig", c.Kubeconfig)...); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "120s")
	c.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: shop}
spec: {hosts: [outside.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
`)

	c.Kubectl(t, "label", "namespace", "shop", "istio-injection=enabled")
	at := wait.Address(t)
	plane := started(t, c, at)
	sees(t, plane)
	injects(t, c, at)
	plane.Stop(t)

	on(slices.Concat([]string{"upgrade", "istiod", newer, "--set", "coxswain.settings.debounceAfter=50ms", "--set", "meshConfig.accessLogFile=/dev/stdout"},
		named)...)
	says(t, c, "deployment/istiod", `{.metadata.labels.app\.kubernetes\.io/version}`, "0.2.0")
	says(t, c, "configmap/coxswain", "{.data.settings\\.yaml}", "debounceAfter: 50ms")
	says(t, c, "configmap/istio", "{.data.mesh}", "accessLogFile: /dev/stdout")
	on("rollback", "istiod", "1")
	says(t, c, "deployment/istiod", `{.metadata.labels.app\.kubernetes\.io/version}`, "0.1.0")
	if out := c.Kubectl(t, "-n", namespace, "get", "configmap", "-o", "name"); strings.Contains(out, "configmap/coxswain\n") {
		t.Errorf("after the rollback there are %s", out)
	}
	plane = started(t, c, at)
	sees(t, plane)
	injects(t, c, at)
	plane.Stop(t)
	if err := pod(t, c); err == nil {
		t.Error("without the control plane a pod is created, without its proxy")
	}

	on("uninstall", "istiod")
	if err := pod(t, c); err != nil {
		t.Errorf("after its end a pod can't be created: %v", err)
	}
	left := c.Kubectl(t, "-n", namespace, "get", "deployment,service,serviceaccount,role,rolebinding,hpa,pdb,configmap", "-o", "name")
	if !strings.Contains(left, "configmap/istio\n") || strings.Contains(left, "istiod") {
		t.Errorf("after its end there are %s", left)
	}
	if out := c.Kubectl(t, "-n", "shop", "get", "serviceentries.networking.istio.io", "-o", "name"); !strings.Contains(out, "outside") {
		t.Errorf("objects went with it: %q", out)
	}
	// It finds what it left.
	on(slices.Concat([]string{"install", "istiod", newer}, named)...)
	// Another revision stands beside it, and whichever ends first leaves the other's pods alone.
	on(slices.Concat([]string{"install", "canary", newer, "--set", "revision=canary,revisionTags={prod}"}, named)...)
	if out := c.Kubectl(
		t, "-n", namespace, "get", "service", "-o", "name",
	); out != "service/istiod\nservice/istiod-canary\nservice/istiod-revision-tag-prod\n" {
		t.Errorf("there are %s", out)
	}
	on("uninstall", "istiod")
	if err := pod(t, c); err != nil {
		t.Errorf("with the other revision alone a pod can't be created: %v", err)
	}
	c.Kubectl(t, "label", "namespace", "shop", "istio-injection-", "istio.io/rev=prod")
	if err := pod(t, c); err == nil {
		t.Error("a pod of the revision that nobody runs is created, without its proxy")
	}
	on("uninstall", "canary")
	if err := pod(t, c); err != nil {
		t.Errorf("after the end of both a pod can't be created: %v", err)
	}
}

// command are the arguments of README's `helm install`, with a chart and the test's image.
func command(t *testing.T, chart string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    helm (install \S+) (dist/\S+)( .*)--set image=… +#`).FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("README.md has no command helm install")
	}
	return slices.Concat(strings.Fields(found[1]), []string{chart}, strings.Fields(found[3]), named)
}

// pod tries to create a pod in the namespace shop, in a dry run.
func pod(t *testing.T, c *kube.Cluster) error {
	t.Helper()
	_, err := trial(t, c)
	return err
}

func trial(t *testing.T, c *kube.Cluster) (*corev1.Pod, error) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	return c.Client(t).CoreV1().Pods("shop").Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// injects sees that a pod that is created has its proxy. The API server of the test has no Services
// that lead anywhere: meanwhile its webhooks have the control plane's address.
func injects(t *testing.T, c *kube.Cluster, at string) {
	t.Helper()
	_, port, _ := strings.Cut(at, ":")
	const of = "mutatingwebhookconfiguration/coxswain-injector"
	var was admission.MutatingWebhookConfiguration
	if err := json.Unmarshal([]byte(c.Kubectl(t, "get", of, "-o", "json")), &was); err != nil {
		t.Fatal(err)
	}
	patch := func(config func(h admission.MutatingWebhook) any) {
		t.Helper()
		var all []map[string]any
		for i, h := range was.Webhooks {
			all = append(all, map[string]any{"op": "replace", "path": fmt.Sprintf("/webhooks/%d/clientConfig", i), "value": config(h)})
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		c.Kubectl(t, "patch", of, "--type", "json", "-p", string(text))
	}
	patch(func(h admission.MutatingWebhook) any {
		return map[string]any{"url": "https://localhost:" + port + *h.ClientConfig.Service.Path, "caBundle": h.ClientConfig.CABundle}
	})
	wait.For(t, "a pod that is created has its proxy", func() error {
		p, err := trial(t, c)
		if err == nil &&
			!slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool { return c.Name == "istio-proxy" }) {
			err = fmt.Errorf("it has %+v", p.Spec)
		}
		return err
	})
	patch(func(h admission.MutatingWebhook) any { return map[string]any{"service": h.ClientConfig.Service} })
}

// pack packs the chart as `make chart` does, and returns its path.
func pack(t *testing.T, version string) string {
	t.Helper()
	return packOf(t, "../..", version)
}

// packOf packs the chart of a source.
func packOf(t *testing.T, source, version string) string {
	t.Helper()
	tool := filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm")
	out, err := exec.Command(filepath.Join(source, "deploy/pack-chart.sh"), tool, version, t.TempDir()).Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	return strings.TrimSpace(string(out))
}

func says(t *testing.T, c *kube.Cluster, object, path, want string) {
	t.Helper()
	if got := c.Kubectl(t, "-n", namespace, "get", object, "-o", "jsonpath="+path); !strings.Contains(got, want) {
		t.Errorf("%s of %s is %q, without %q", path, object, got, want)
	}
}

// started starts the program as `pods` does; webhooks is where it answers these.
func started(t *testing.T, c *kube.Cluster, webhooks string) *mesh.Plane {
	t.Helper()
	return pods(t, c, binary, 6, "--httpsAddr", webhooks, "--istiodCustomHost", "localhost")
}

// pods starts a program with the arguments of the Deployment's pods, but for the command and
// addresses, so many as it has of both, as their account.
func pods(t *testing.T, c *kube.Cluster, program string, own int, more ...string) *mesh.Plane {
	t.Helper()
	var d appsv1.Deployment
	if err := json.Unmarshal([]byte(c.Kubectl(t, "-n", namespace, "get", "deployment", "istiod", "-o", "json")), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	args := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return a == "discovery" || strings.HasSuffix(name, "Addr")
	})
	if len(args) != len(pod.Containers[0].Args)-own {
		t.Fatalf("pods have %q", pod.Containers[0].Args)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	token := strings.TrimSpace(c.Kubectl(t, "create", "token", pod.ServiceAccountName, "-n", namespace))
	if err := os.WriteFile(kubeconfig, []byte(c.Remote(t, token)), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := mesh.Start(t, program, "", slices.Concat(args, []string{"--kubeconfig", kubeconfig}, more)...)
	plane.Ready(t)
	return plane
}

// sees waits until it has what users wrote, and no right was missing.
func sees(t *testing.T, p *mesh.Plane) {
	t.Helper()
	wait.For(t, "it has what users wrote", func() error {
		text, err := p.Get("/debug/configs")
		if err == nil && !strings.Contains(text, "shop/outside") {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
	if log := p.Log(); strings.Contains(log, "forbidden") {
		t.Errorf("it lacks rights: %s", log)
	}
}
