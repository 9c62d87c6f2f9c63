package kube_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	built "github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// canarySet is a set with webhooks alone, of the revision canary.
const canarySet = `plugins:
  - {name: crds, kind: config, builtin: config/kubernetes}
  - {name: ca, kind: controller, builtin: controller/ca, config: {keep: secret}}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: injector
    kind: controller
    builtin: controller/injector
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [coxswain-injector-canary], revision: canary}
  - name: validator
    kind: controller
    builtin: controller/validator
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [coxswain-validator-canary], revision: canary}
`

// created says who injected into a pod of these labels, as it would be created: the revision;
// empty: nobody did.
func created(t *testing.T, client kubernetes.Interface, namespace string, labels map[string]string) (by string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: namespace, Labels: labels},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	is, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	for _, c := range slices.Concat(is.Spec.InitContainers, is.Spec.Containers) {
		if c.Name == "istio-proxy" {
			return is.Annotations["istio.io/rev"], nil
		}
	}
	return "", nil
}

// labelled is a table of what becomes of pods by the labels of their namespace and their own.
type labelled struct {
	namespace, pod map[string]string
	want           string
}

func of(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

const revLabel, injectionLabel, injectLabel = "istio.io/rev", "istio-injection", "sidecar.istio.io/inject"

// istiosTable is who injects into what, where there are a default revision and one that is called
// canary. Source: Istio, "Installing the Sidecar", "Controlling the injection policy", and the
// selectors of its charts.
var istiosTable = []labelled{
	{of(), of(), ""},
	{of(), of(injectLabel, "true"), "default"},
	{of(), of(injectLabel, "false"), ""},
	{of(), of(revLabel, "canary"), "canary"},
	{of(), of(revLabel, "default"), "default"},
	{of(), of(revLabel, "nobody"), ""},
	{of(), of(injectLabel, "true", revLabel, "canary"), "canary"},
	{of(), of(injectLabel, "false", revLabel, "canary"), ""},
	{of(injectionLabel, "enabled"), of(), "default"},
	{of(injectionLabel, "enabled"), of(injectLabel, "false"), ""},
	{of(injectionLabel, "enabled"), of(injectLabel, "true"), "default"},
	{of(injectionLabel, "enabled"), of(revLabel, "canary"), "default"},
	{of(injectionLabel, "enabled", revLabel, "canary"), of(), "default"},
	{of(injectionLabel, "disabled"), of(), ""},
	{of(injectionLabel, "disabled"), of(injectLabel, "true"), ""},
	{of(injectionLabel, "disabled", revLabel, "canary"), of(), ""},
	{of(revLabel, "default"), of(), "default"},
	{of(revLabel, "canary"), of(), "canary"},
	{of(revLabel, "canary"), of(injectLabel, "false"), ""},
	{of(revLabel, "canary"), of(revLabel, "default"), "canary"},
	{of(revLabel, "nobody"), of(), ""},
	{of(revLabel, "nobody"), of(injectLabel, "true"), ""},
	{of(revLabel, "prod"), of(), ""}, // until there is such a tag
}

// namespaces makes one for each set of labels, and returns their names.
func namespaces(t *testing.T, c *kube.Cluster, table []labelled) map[string]string {
	t.Helper()
	names := map[string]string{}
	var all []string
	for _, row := range table {
		id := fmt.Sprint(row.namespace)
		if names[id] != "" {
			continue
		}
		names[id] = fmt.Sprintf("labelled-%d", len(names))
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(row.namespace)) {
			labels = append(labels, k+": "+row.namespace[k])
		}
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}", names[id], strings.Join(labels, ", ")))
	}
	c.Apply(t, documents(all...))
	return names
}

// TestRevisions: two control planes on one cluster inject into pods and judge objects, each its
// own, as labels of namespaces and pods say, and tags; a tag is moved and removed, the default one
// takes the default revision's part and gives it back. What is not ours stays, and once all that is
// ours is removed pods are created.
func TestRevisions(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, system)
	names := namespaces(t, c, istiosTable)
	client := c.Client(t)
	start := func(revision string, args ...string) *mesh.Plane {
		at := wait.Address(t)
		_, port, _ := strings.Cut(at, ":")
		p := mesh.Start(t, program, "", append(args, "--kubeconfig", c.Kubeconfig, "--httpsAddr", at, "--istiodCustomHost", "localhost", "--revision", revision)...)
		c.Apply(t, printed(t, "https://localhost:"+port, "--revision", revision))
		return p
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, canarySet)
	planes := []*mesh.Plane{start("default"), start("canary", "--plugins", file)} // the first has the built-in set
	foreign := foreignHooks()
	c.Apply(t, foreign)
	for _, p := range planes {
		p.Ready(t)
	}
	check := func(when string, table []labelled) {
		t.Helper()
		for _, row := range table {
			got, err := created(t, client, names[fmt.Sprint(row.namespace)], row.pod)
			if err != nil || got != row.want {
				t.Errorf("%s, a pod %v of a namespace %v is of %q (%v), not of %q", when, row.pod, row.namespace, got, err, row.want)
			}
		}
	}
	inject := func(what string, row labelled) {
		t.Helper()
		wait.For(t, what, func() error {
			got, err := created(t, client, names[fmt.Sprint(row.namespace)], row.pod)
			if err == nil && got != row.want {
				err = fmt.Errorf("it is of %q", got)
			}
			return err
		})
	}
	inject("the default revision injects", labelled{of(revLabel, "default"), of(), "default"})
	inject("the canary injects", labelled{of(revLabel, "canary"), of(), "canary"})
	check("with two revisions", istiosTable)
	for _, away := range []string{"istio-system", "kube-system", "kube-public", "kube-node-lease"} {
		for _, label := range []string{injectLabel, revLabel} {
			value := map[string]string{injectLabel: "true", revLabel: "canary"}[label]
			if got, err := created(t, client, away, of(label, value)); got != "" || err != nil {
				t.Errorf("a pod of %s is of %q: %v", away, got, err)
			}
		}
	}
	judged(t, c, "", "validator.coxswain.io")
	judged(t, c, "default", "rev.validator.coxswain.io")
	judged(t, c, "canary", "rev.validator.coxswain.io")
	judged(t, c, "nobody", "")

	tag := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program, append([]string{"tag", "--kubeconfig", c.Kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("coxswain tag %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	prod := labelled{of(revLabel, "prod"), of(), "canary"}
	tag("set", "prod", "--revision", "canary")
	inject("a tag has its revision's proxies", prod)
	tag("set", "prod", "--revision", "default", "--overwrite")
	prod.want = "default"
	inject("a tag that was moved has the other's", prod)
	tag("set", "default", "--revision", "canary")
	prod.want = "default"
	inject("the default tag is the canary's", labelled{of(injectionLabel, "enabled"), of(), "canary"})
	var moved []labelled
	for _, row := range istiosTable {
		if row.want == "default" {
			row.want = "canary"
		}
		if row.namespace[revLabel] == "prod" {
			row = prod
		}
		moved = append(moved, row)
	}
	check("with the default tag", moved)
	if out := tag("list"); !strings.Contains(out, "prod") || !strings.Contains(out, "default") || !strings.Contains(out, names[fmt.Sprint(prod.namespace)]) {
		t.Errorf("tags are %s", out)
	}
	rootOfTag(t, c)
	tag("remove", "default", "--yes")
	tag("remove", "prod", "--yes")
	istioctlTags(t, c, tag, func(what string) { inject(what, labelled{of(revLabel, "prod"), of(), "canary"}) })
	inject("the default revision has its part again", labelled{of(injectionLabel, "enabled"), of(), "default"})
	check("without tags", istiosTable)
	leaves(t, c, client, planes, names)
}

// istioctlTags has istioctl make a tag of ours, which has its root, and is ours to move and remove.
func istioctlTags(t *testing.T, c *kube.Cluster, tag func(args ...string) string, injects func(what string)) {
	t.Helper()
	if !need.Long() {
		return
	}
	bin := built.Built(t, "test/peer", "peer", "istioctl")
	cmd := exec.Command(filepath.Join(bin, "istioctl"), "--kubeconfig", c.Kubeconfig, "tag", "set", "prod", "--revision", "canary", "-y")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("istioctl tag: %v\n%s", err, out)
	}
	injects("istioctl's tag has its revision's proxies")
	if out := tag("list"); !strings.Contains(out, "prod") || !strings.Contains(out, "canary") {
		t.Errorf("tags are %s", out)
	}
	const of = "mutatingwebhookconfiguration/istio-revision-tag-prod"
	c.Kubectl(t, "patch", of, "--type", "json", "-p", `[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
	wait.For(t, "the root is back in istioctl's tag", func() error {
		if c.Kubectl(t, "get", of, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}") == "" {
			return fmt.Errorf("it is away")
		}
		return nil
	})
	tag("remove", "prod", "--yes")
}

// judged sees who refuses a VirtualService with the label of a revision; empty: nobody.
func judged(t *testing.T, c *kube.Cluster, revision, webhook string) {
	t.Helper()
	labels := ""
	if revision != "" {
		labels = revLabel + ": " + revision
	}
	object := fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: bad, namespace: default, labels: {%s}}\nspec: {hosts: [a]}\n", labels)
	wait.For(t, fmt.Sprintf("an object of the revision %q is judged by %q", revision, webhook), func() error {
		out, err := applied(t, c, object)
		switch {
		case webhook == "" && err == nil:
			c.Kubectl(t, "delete", "virtualservice", "bad")
		case webhook == "" || err == nil || !strings.Contains(out, `admission webhook "`+webhook+`" denied`) || !strings.Contains(out, "http, tcp or tls"):
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}

// rootOfTag sees that the control plane keeps its root in a tag's configurations.
func rootOfTag(t *testing.T, c *kube.Cluster) {
	t.Helper()
	for _, of := range []string{"mutatingwebhookconfiguration/istio-revision-tag-prod", "validatingwebhookconfiguration/istiod-default-validator"} {
		c.Kubectl(t, "patch", of, "--type", "json", "-p", `[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
		wait.For(t, "the root is back in "+of, func() error {
			if c.Kubectl(t, "get", of, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}") == "" {
				return fmt.Errorf("it is away")
			}
			return nil
		})
	}
}

// foreignHooks are webhooks of somebody else, which look like ours and like istiod's.
func foreignHooks() string {
	const of = `
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: %s, labels: {%s}}
webhooks:
- name: %s
  clientConfig: {url: "https://127.0.0.1:1/x"}
  failurePolicy: Ignore
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {no: body}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
`
	return documents(
		fmt.Sprintf(of, "MutatingWebhookConfiguration", "istio-sidecar-injector-other", "istio.io/rev: other, app: sidecar-injector", "rev.namespace.sidecar-injector.istio.io"),
		fmt.Sprintf(of, "MutatingWebhookConfiguration", "coxswain-lookalike", "app.kubernetes.io/managed-by: coxswain", "lookalike.example.com"),
		fmt.Sprintf(of, "ValidatingWebhookConfiguration", "coxswain-validator-lookalike", "istio.io/rev: canary", "validator.coxswain.io.example.com"),
	)
}

// leaves sees that without control planes pods of labelled namespaces can't be created, until
// uninstall has taken our webhooks away, and no others.
func leaves(t *testing.T, c *kube.Cluster, client kubernetes.Interface, planes []*mesh.Plane, names map[string]string) {
	t.Helper()
	for _, p := range planes {
		p.Kill()
	}
	shop := names[fmt.Sprint(of(injectionLabel, "enabled"))]
	if _, err := created(t, client, shop, of()); err == nil {
		t.Error("a pod is created without its proxy")
	}
	uninstall := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program, append([]string{"uninstall", "--webhooks", "--kubeconfig", c.Kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("coxswain uninstall %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	configurations := func() string {
		return c.Kubectl(t, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name")
	}
	before := configurations()
	if out := uninstall(); !strings.Contains(out, "MutatingWebhookConfiguration/coxswain-injector would be removed") || !strings.Contains(out, "istio-sidecar-injector-other stays") ||
		strings.Contains(out, "lookalike would") || configurations() != before {
		t.Errorf("without --yes it says %s, and there are %s", out, configurations())
	}
	uninstall("--revision", "canary", "--yes")
	if got := configurations(); strings.Contains(got, "injector-canary") || !strings.Contains(got, "coxswain-injector\n") {
		t.Errorf("without the canary's there are %s", got)
	}
	uninstall("--yes")
	want := "mutatingwebhookconfiguration.admissionregistration.k8s.io/coxswain-lookalike\nmutatingwebhookconfiguration.admissionregistration.k8s.io/istio-sidecar-injector-other\n" +
		"validatingwebhookconfiguration.admissionregistration.k8s.io/coxswain-validator-lookalike\n"
	if got := configurations(); got != want {
		t.Errorf("there are %s", got)
	}
	wait.For(t, "pods are created", func() error { _, err := created(t, client, shop, of()); return err })
	if out := uninstall("--yes"); !strings.Contains(out, "there is nothing to remove") {
		t.Errorf("a second time it says %s", out)
	}
}
