package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	heldService = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.1}]
`
	heldPatch = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patience, namespace: test}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {cluster: {service: web.example}}
    patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 7, %s}}
`
	heldRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: test}
spec:
  host: %s
`
)

// TestInvalidEdits edits one resource to what can't be taken, and another to what Envoy would
// refuse: what is served stays, the reason is in the log, the metric, the page and the command,
// with place and age, and the fix clears it.
func TestInvalidEdits(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) { place(t, filepath.Join(dir, name), text) }
	write("web.yaml", heldService)
	write("filter.yaml", fmt.Sprintf(heldPatch, "alt_stat_name: a"))
	write("rule.yaml", fmt.Sprintf(heldRule, "web.example"))
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	bootstrap := plane.Bootstrap(t, "--name", "client", "--namespace", "test", "--type", "sidecar", "--ip", "127.0.0.20", "--admin", wait.Address(t))
	id := plane.Follow(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
	served := func() string { return dumped(t, plane, id) }
	good := served()
	if !strings.Contains(good, "web.example") {
		t.Fatalf("no cluster of web.example in %s", good)
	}
	for _, c := range []struct{ name, file, bad, fix, state, metric, reason string }{
		{"refused", "rule.yaml", fmt.Sprintf(heldRule, "'**.example'"), fmt.Sprintf(heldRule, "web.example"),
			"refused", `coxswain_config_faults{plugin="files",severity="error"} 1`, "COX"},
		{"held", "filter.yaml", fmt.Sprintf(heldPatch, "health_checks: [{timeout: 1s}]"), fmt.Sprintf(heldPatch, "alt_stat_name: a"),
			"held", `coxswain_config_faults{plugin="istio",severity="error"} 1`, "Envoy would refuse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(c.file, c.bad)
			shows(t, plane, c.metric, c.state, c.file+":", c.reason)
			if !strings.Contains(plane.Log(), c.reason) {
				t.Errorf("not in the log: %s", plane.LastLines(5))
			}
			if served() != good {
				t.Error("what is served has changed")
			}
			write(c.file, c.fix)
			cleared(t, plane, c.metric)
			if out := config(t, plane); strings.Contains(out, c.state) || served() != good {
				t.Errorf("after the fix:\n%s", out)
			}
		})
	}
}

// shows waits until metric, page and command say what is wrong.
func shows(t *testing.T, plane *mesh.Plane, metric string, words ...string) {
	t.Helper()
	wait.For(t, "metric, page and command show it", func() error {
		if m, err := page.Get(plane.Monitoring, "/metrics"); err != nil || !strings.Contains(m, metric) {
			return fmt.Errorf("%v, or no %s", err, metric)
		}
		shown, err := plane.Get("/debug/configs")
		if err != nil || !strings.Contains(shown, `"since"`) {
			return fmt.Errorf("%v, or no age in %s", err, shown)
		}
		out := config(t, plane)
		for _, w := range append(words, ", for ") {
			if !strings.Contains(out, w) || w != ", for " && !strings.Contains(shown, strings.TrimSuffix(w, ":")) {
				return fmt.Errorf("no %q in\n%s\n%s", w, out, shown)
			}
		}
		return nil
	})
}

// cleared waits until a fault is counted no more.
func cleared(t *testing.T, plane *mesh.Plane, metric string) {
	t.Helper()
	wait.For(t, "the fix clears it", func() error {
		if m, err := page.Get(plane.Monitoring, "/metrics"); err != nil || strings.Contains(m, metric) {
			return fmt.Errorf("%v, or still counted", err)
		}
		return nil
	})
}

// dumped is what a connected proxy is to have.
func dumped(t *testing.T, plane *mesh.Plane, id string) string {
	t.Helper()
	dump, err := plane.Get("/debug/config_dump?proxyID=" + id)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// config is what `coxswain config` prints.
func config(t *testing.T, plane *mesh.Plane) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "config", "--addr", plane.HTTP).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
