package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInject: pods and workloads of files and of standard input are printed with a proxy, by the
// values, templates and mesh that are named; all else as it is, and who gets none is named. Of a
// file that is wrong nothing is printed.
func TestInject(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("COXSWAIN_TEST_INJECT", "told")
	for name, text := range map[string]string{
		"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" +
			"spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app}]}}}\n",
		"values.yaml": "global: {hub: registry.example, tag: v7}\n",
		"mesh.yaml":   "defaultConfig: {proxyMetadata: {OF_MESH: told}}\n",
		"inject.yaml": "policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {of: mine}}'}\n",
		"map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio-sidecar-injector}\ndata:\n  values: '{}'\n" +
			"  config: |\n    policy: enabled\n    templates: {sidecar: 'metadata: {labels: {of: map}}'}\n",
		"never.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: alone}\nspec: {hostNetwork: true, containers: [{name: app, image: app}]}\n",
		"bare.yaml": "# a note\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bare}\n---\n" + `apiVersion: v1
kind: Pod
metadata: {name: beside}
spec: {containers: [{name: app, image: app}]}
`,
		"asks.yaml": "policy: enabled\ntemplates: {sidecar: 'metadata: {labels: {of: {{ env \"COXSWAIN_TEST_INJECT\" \"nobody\" }}}}'}\n",
		"bad.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: none}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inject := func(in string, args ...string) (code int, out, said string) {
		var stdout, stderr bytes.Buffer
		for i, a := range args {
			if strings.HasSuffix(a, ".yaml") {
				args[i] = filepath.Join(dir, a)
			}
		}
		code = run(t.Context(), append([]string{"inject"}, args...), nil, strings.NewReader(in), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: piped}\nspec: {containers: [{name: app, image: app}]}\n"
	for what, c := range map[string]struct {
		in   string
		args []string
		has  []string
	}{
		"a workload": {"", []string{"-f", "web.yaml", "--values", "values.yaml", "--mesh", "mesh.yaml", "--revision", "canary"},
			[]string{"kind: ConfigMap", "name: istio-proxy", "registry.example/proxyv2:v7", "OF_MESH", "istio.io/rev: canary", "restartPolicy: Always"}},
		"no native sidecar":      {pod, []string{"-f", "-", "--native-sidecars=false"}, []string{"name: piped", "name: istio-proxy", "name: istio-init"}},
		"templates of one's own": {pod, []string{"-f", "-", "--injectConfig", "inject.yaml"}, []string{"of: mine"}},
		"a variable":             {pod, []string{"-f", "-", "--injectConfig", "asks.yaml", "--env", "COXSWAIN_TEST_INJECT"}, []string{"of: told"}},
		"a variable not allowed": {pod, []string{"-f", "-", "--injectConfig", "asks.yaml"}, []string{"of: nobody"}},
		"a ConfigMap":            {pod, []string{"-f", "-", "--configMap", "map.yaml"}, []string{"of: map"}},
	} {
		code, out, said := inject(c.in, c.args...)
		if code != 0 || said != "" {
			t.Errorf("%s: %d %s", what, code, said)
		}
		for _, part := range c.has {
			if !strings.Contains(out, part) {
				t.Errorf("%s: %q is not in\n%s", what, part, out)
			}
		}
	}
	if code, out, said := inject("", "-f", "never.yaml"); code != 0 || strings.Contains(out, "istio-proxy") || !strings.Contains(said, "alone gets no proxy") {
		t.Errorf("%d %s %s", code, out, said)
	}
	code, out, said := inject("", "-f", "bare.yaml")
	if code != 0 || !strings.HasPrefix(out, "# a note\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bare}\n---\n") ||
		!strings.Contains(out, "istio-proxy") || !strings.Contains(said, "bare gets no proxy: it has no spec.template.spec") {
		t.Errorf("a workload without a template: %d %s %s", code, out, said)
	}
	for what, args := range map[string][]string{
		"nothing is named": nil, "a file is wrong": {"-f", "web.yaml", "-f", "bad.yaml"},
		"both": {"-f", "web.yaml", "--configMap", "map.yaml", "--values", "values.yaml"},
	} {
		if code, out, said := inject("", args...); code == 0 || out != "" || said == "" {
			t.Errorf("%s: %d %q %q", what, code, out, said)
		}
	}
}
