package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const crowdedRoute = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: r%03d, namespace: %s, creationTimestamp: "2026-01-01T00:00:%02dZ"}
spec: {hosts: [r%03d.example], http: [{route: [{destination: {host: r.example}}]}]}
`

const crowdedPolicy = `---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: p%03d, namespace: evil}
spec: {action: DENY, rules: [{from: [{source: {ipBlocks: [10.0.0.%d]}}]}]}
`

// TestAFullNamespace: of a namespace's many objects the oldest are served, after a restart the same
// ones; those of others are, and what forbids something. Where people look it is said why, once in
// the log. What is refused comes in when there is room.
func TestAFullNamespace(t *testing.T) {
	dir := t.TempDir()
	write := func(file string, n int, object func(i int) string) {
		var text strings.Builder
		for i := range n {
			text.WriteString(object(i))
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	route := func(namespace string) func(int) string {
		return func(i int) string { return fmt.Sprintf(crowdedRoute, i, namespace, i%60, i) }
	}
	policy := func(i int) string { return fmt.Sprintf(crowdedPolicy, i, i) }
	write("evil.yaml", 150, route("evil"))
	write("policies.yaml", 5, policy)
	write("shop.yaml", 5, route("shop"))
	plane := mesh.Start(t, program, dir, "--maxNamespaceBytes", fmt.Sprint(1<<20))
	plane.Ready(t)
	first := servedOf(t, plane)
	if n := count(first, "VirtualService evil/"); n < 90 || n > 149 {
		t.Errorf("%d of 150 routes are served", n)
	}
	if n := count(first, "VirtualService shop/"); n != 5 {
		t.Errorf("%d of 5 routes of another namespace are served", n)
	}
	if n := count(first, "AuthorizationPolicy evil/"); n != 5 {
		t.Errorf("%d of 5 policies are served", n)
	}
	out, err := exec.CommandContext(t.Context(), program, "config", "--addr", plane.HTTP).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "maxNamespaceBytes") || !strings.Contains(string(out), "refused (not served)") {
		t.Errorf("coxswain config: %v %.2000s", err, out)
	}
	if text := metrics(t, plane); !strings.Contains(text, `coxswain_namespace_refused_rows{namespace="evil",of="others"}`) {
		t.Error("no metric says that rows are refused")
	}
	if n := strings.Count(plane.Log(), "a namespace is full"); n != 1 {
		t.Errorf("the log says %d times that a namespace is full", n)
	}

	plane.Stop(t)
	plane = plane.Again(t)
	plane.Ready(t)
	if again := servedOf(t, plane); strings.Join(first, "\n") != strings.Join(again, "\n") {
		t.Errorf("after a restart others are served: %d, not %d", len(again), len(first))
	}

	write("evil.yaml", 110, route("evil"))
	wait.For(t, "there is room again", func() error {
		if n := count(servedOf(t, plane), "VirtualService evil/"); n != 110 || strings.Contains(metrics(t, plane), "coxswain_namespace_refused_rows{") {
			return fmt.Errorf("%d of 110 are served", n)
		}
		return nil
	})
	write("policies.yaml", 150, policy)
	wait.For(t, "all is forbidden where policies don't fit", func() error {
		for _, object := range servedOf(t, plane) {
			if strings.HasPrefix(object, "AuthorizationPolicy evil/~") {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
	if n := count(servedOf(t, plane), "VirtualService evil/"); n != 110 {
		t.Errorf("%d of 110 routes are served when policies don't fit", n)
	}
}

// servedOf are the config objects that are served, as KIND NAMESPACE/NAME.
func servedOf(t *testing.T, plane *mesh.Plane) (all []string) {
	t.Helper()
	var objects []admin.Object
	text, err := plane.Get("/debug/configs")
	if err == nil {
		err = json.Unmarshal([]byte(text), &objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.Served {
			all = append(all, o.Kind+" "+o.Key)
		}
	}
	return all
}

func count(all []string, prefix string) (n int) {
	for _, one := range all {
		if strings.HasPrefix(one, prefix) {
			n++
		}
	}
	return n
}

func metrics(t *testing.T, plane *mesh.Plane) string {
	t.Helper()
	text, err := page.Get(plane.Monitoring, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return text
}
