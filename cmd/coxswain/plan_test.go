package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const planEntry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: shop}
spec:
  hosts: [%[1]s.example]
  exportTo: [%[2]s]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: %[3]s}]
`

const planProxies = `proxies:
- node: {id: sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local, metadata: {NAMESPACE: shop}}
- node: {id: sidecar~10.0.0.2~web-2.shop~shop.svc.cluster.local, metadata: {NAMESPACE: shop}}
- node: {id: sidecar~10.0.0.3~other-1.bar~bar.svc.cluster.local, metadata: {NAMESPACE: bar}}
`

// planned runs the command with files, each named as its path, and returns what it prints.
func planned(t *testing.T, files map[string]string, args ...string) (code int, out, failed string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o, e bytes.Buffer
	code = run(t.Context(),
		append([]string{"plan", "-f", "new", "--against", "old", "--proxies", "proxies.yaml"}, args...),
		os.Environ(), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestPlan: an endpoint that changes for one namespace is shown for its proxies alone, and two runs
// print the same; what is refused has its place.
func TestPlan(t *testing.T) {
	files := map[string]string{
		"old/a.yaml": fmt.Sprintf(planEntry, "a", `"."`, "10.1.0.1"), "new/a.yaml": fmt.Sprintf(planEntry, "a", `"."`, "10.1.0.2"),
		"old/b.yaml": fmt.Sprintf(planEntry, "b", `"*"`, "10.1.1.1"), "new/b.yaml": fmt.Sprintf(planEntry, "b", `"*"`, "10.1.1.1"),
		"new/bad.yaml": "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: bad, namespace: shop}\nspec: {hostz: [x]}\n",
		"proxies.yaml": planProxies,
	}
	code, first, failed := planned(t, files, "--exit-code")
	if code != 1 {
		t.Fatalf("exit code %d, want 1: %s%s", code, first, failed)
	}
	for _, want := range []string{
		"old -> new: 2 of 3 proxies would get something else\n", "\nnew/bad.yaml:4:8: error: ", "is not served here",
		"ClusterLoadAssignment, 2 proxies: sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local, sidecar~10.0.0.2~web-2.shop~shop.svc.cluster.local\n",
		"~ outbound|80||a.example\n", "[10.1.0.1:80]", "[10.1.0.2:80]",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("lacks %q:\n%s", want, first)
		}
	}
	for _, no := range []string{"other-1", "b.example"} {
		if strings.Contains(first, no) {
			t.Errorf("has %q:\n%s", no, first)
		}
	}
	code, markdown, _ := planned(t, files, "-o", "markdown")
	if code != 0 || !strings.Contains(markdown, "<details><summary>ClusterLoadAssignment, 2 proxies: ") {
		t.Errorf("exit code %d:\n%s", code, markdown)
	}
	_, again, _ := planned(t, files, "-o", "markdown")
	if again != markdown {
		t.Errorf("differs:\n%s\n%s", again, markdown)
	}
}

// TestPlanOfTheSame: nothing differs, and that is no failure with --exit-code.
func TestPlanOfTheSame(t *testing.T) {
	a := fmt.Sprintf(planEntry, "a", `"*"`, "10.1.0.1")
	code, out, failed := planned(t, map[string]string{"old/a.yaml": a, "new/a.yaml": a, "proxies.yaml": planProxies}, "--exit-code")
	if code != 0 || out != "old -> new: nothing would change for 3 proxies\n" {
		t.Errorf("exit code %d: %s%s", code, out, failed)
	}
}

// TestPlanFails: input that can't be ends in exit code 2, with what is wrong.
func TestPlanFails(t *testing.T) {
	files := map[string]string{"old/a.yaml": "", "new/a.yaml": "", "proxies.yaml": planProxies}
	for _, c := range []struct {
		name, file, text string
		args             []string
		want             string
	}{
		{"no against", "", "", []string{"--against", ""}, "wants -f NEW"},
		{"live and a file", "", "", []string{"--against", "live"}, "leave --proxies out"},
		{"live is nowhere", "", "", []string{"--against", "live", "--proxies", "", "--addr", "127.0.0.1:1"}, "connection refused"},
		{"plugins of live", "", "", []string{"--against", "live", "--proxies", "", "--against-plugins", "x"}, "leave out --against-program"},
		{"no such plugins", "", "", []string{"--plugins", "none.yaml"}, "plugins: open none.yaml"},
		{"no proxies", "proxies.yaml", "proxies: []\n", nil, "proxies.yaml: there is no proxy in it"},
		{"a node that is none", "proxies.yaml", "proxies: [{node: {idd: x}}]\n", nil, "proxies.yaml: proxies[0].node is no envoy.config.core.v3.Node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := map[string]string{}
			if c.file != "" {
				with[c.file] = c.text
			}
			for name, text := range files {
				if with[name] == "" {
					with[name] = text
				}
			}
			code, out, failed := planned(t, with, c.args...)
			if code != 2 || !strings.Contains(failed, c.want) {
				t.Errorf("exit code %d, %s%s, want %q", code, out, failed, c.want)
			}
		})
	}
}

// TestPlanOfClients: a client of gRPC asks for what it subscribes to, and for what that names.
func TestPlanOfClients(t *testing.T) {
	const proxies = `proxies:
- node: {id: sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local, metadata: {NAMESPACE: shop, GENERATOR: grpc}}
  subscribes:
    type.googleapis.com/envoy.config.listener.v3.Listener: ["a.example:80"]
    type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret: [default]
`
	code, out, failed := planned(t, map[string]string{
		"old/a.yaml": fmt.Sprintf(planEntry, "a", `"."`, "10.1.0.1"), "new/a.yaml": fmt.Sprintf(planEntry, "a", `"."`, "10.1.0.2"),
		"old/b.yaml": fmt.Sprintf(planEntry, "b", `"*"`, "10.1.1.1"), "new/b.yaml": fmt.Sprintf(planEntry, "b", `"*"`, "10.1.1.2"),
		"proxies.yaml": proxies,
	})
	if code != 0 || !strings.Contains(out, "ClusterLoadAssignment, 1 proxy: ") ||
		!strings.Contains(out, "[10.1.0.2:80]") || !strings.Contains(out, "not compared: Secret\n") ||
		strings.Contains(out, "b.example") {
		t.Errorf("exit code %d: %s%s", code, out, failed)
	}
}

// TestPlanOfPlugins: what another plugins.yaml would change is shown, with the same directory on
// both sides.
func TestPlanOfPlugins(t *testing.T) {
	const set = `plugins:
- {name: files, kind: config, builtin: config/file}
- {name: mesh, kind: config, builtin: config/mesh}
- {name: istio, kind: generator, builtin: generator/istio}
`
	a := fmt.Sprintf(planEntry, "a", `"."`, "10.1.0.1")
	files := map[string]string{
		"old/a.yaml": a, "new/a.yaml": a, "proxies.yaml": planProxies,
		"with.yaml":    set + "- {name: entries, kind: registry, builtin: registry/serviceentry}\n",
		"without.yaml": set,
	}
	code, out, failed := planned(t, files, "--against-plugins", "with.yaml", "--plugins", "without.yaml", "--exit-code")
	if code != 1 || !strings.Contains(out, "Cluster, 2 proxies: ") || !strings.Contains(out, "- outbound|80||a.example\n") {
		t.Errorf("exit code %d: %s%s", code, out, failed)
	}
	if code, out, failed := planned(t, files, "--plugins", "with.yaml", "--exit-code"); code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, failed)
	}
}
