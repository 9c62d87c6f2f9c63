package chart_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

var update = flag.Bool("update", false, "write the chart's files of webhooks anew")

// hooks are the configurations that `coxswain webhooks` prints.
func hooks(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, append([]string{"webhooks"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestWebhooksAreOnes: the chart's webhooks are those of `coxswain webhooks`, in its files and as
// they are rendered, for the default revision, another one, tags, and another namespace. With
// -update the files are written.
func TestWebhooksAreOnes(t *testing.T) {
	t.Parallel()
	place := []string{"--namespace", "release-namespace", "--service", "release-service", "--account", "release-account"}
	for name, args := range map[string][]string{
		"default": {"--auto-inject-namespaces"}, "revision": {"--revision", "release-revision"},
		"tag":         {"--revision", "release-revision", "--tag", "release-tag"},
		"tag-default": {"--revision", "release-revision", "--tag", "default", "--auto-inject-namespaces"},
	} {
		file, want := filepath.Join(source, "files", "webhooks-"+name+".yaml"), hooks(t, slices.Concat(place, args)...)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(file); err != nil || string(is) != want {
			t.Errorf("%s is not what coxswain webhooks prints (%v): go test ./test/chart -run TestWebhooksAreOnes -update", file, err)
		}
	}
	for _, c := range []struct{ set, args []string }{
		{nil, []string{"--account", "istiod"}},
		{
			[]string{"--namespace", "mesh", "--set", "sidecarInjectorWebhook.reinvocationPolicy=Never"},
			[]string{"--account", "istiod", "--namespace", "mesh", "--reinvocation", "Never"},
		},
		{[]string{"--set", "sidecarInjectorWebhook.enableNamespacesByDefault=true"}, []string{"--account", "istiod", "--auto-inject-namespaces"}},
		{[]string{"--set", "revision=canary"}, []string{"--revision", "canary", "--service", "istiod-canary", "--account", "istiod-canary"}},
	} {
		of := objects(t, c.set...)
		same(t, of, hooks(t, c.args...))
		tagged := objects(t, append(c.set, "--set", "revisionTags={prod,default}")...)
		for _, tag := range []string{"prod", "default"} {
			args := slices.DeleteFunc(slices.Clone(c.args), func(a string) bool { return tag == "prod" && a == "--auto-inject-namespaces" })
			same(t, tagged, hooks(t, append(args, "--tag", tag)...))
			if s := as[corev1.Service](t, tagged, "Service/istiod-revision-tag-"+tag); len(s.Spec.Ports) != 4 || s.Labels["istio.io/tag"] != tag {
				t.Errorf("the tag's Service is %+v", s)
			}
		}
		if text := string(tagged["ClusterRole/istiod-clusterrole-istio-system"]) +
			string(tagged["ClusterRole/istiod-clusterrole-canary-istio-system"]) +
			string(tagged["ClusterRole/istiod-clusterrole-mesh"]); !strings.Contains(text, `"istio-revision-tag-prod"`) ||
			!strings.Contains(text, `"istiod-default-validator"`) {
			t.Errorf("with tags it may change %s", text)
		}
	}
	for set, gone := range map[string][]string{
		"webhooks.enabled=false": {
			"MutatingWebhookConfiguration/coxswain-injector", "ValidatingWebhookConfiguration/coxswain-validator",
			"ConfigMap/istio-sidecar-injector",
		},
		"global.operatorManageWebhooks=true":       {"MutatingWebhookConfiguration/coxswain-injector", "ValidatingWebhookConfiguration/coxswain-validator"},
		"global.configValidation=false":            {"ValidatingWebhookConfiguration/coxswain-validator"},
		"global.omitSidecarInjectorConfigMap=true": {"ConfigMap/istio-sidecar-injector"},
	} {
		of := objects(t, "--set", set)
		for _, id := range gone {
			if of[id] != nil {
				t.Errorf("with %s there is %s", set, id)
			}
		}
	}
}

// same sees that the chart has webhooks as they are printed.
func same(t *testing.T, of map[string]json.RawMessage, printed string) {
	t.Helper()
	for id := range split(t, printed) {
		switch kind, _, _ := strings.Cut(id, "/"); kind {
		case "MutatingWebhookConfiguration":
			alike(t, id, as[admission.MutatingWebhookConfiguration](t, of, id).Webhooks,
				as[admission.MutatingWebhookConfiguration](t, split(t, printed), id).Webhooks)
		case "ValidatingWebhookConfiguration":
			alike(t, id, as[admission.ValidatingWebhookConfiguration](t, of, id).Webhooks,
				as[admission.ValidatingWebhookConfiguration](t, split(t, printed), id).Webhooks)
		default:
			t.Errorf("%s is printed", id)
		}
	}
}

func alike[T any](t *testing.T, id string, got, want []T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%s is\n%+v, not\n%+v", id, got, want)
	}
}
