package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const misnamedSet = `plugins:
- name: memory
  kind: registry
  builtin: registry/memory
  config:
    services:
    - {host: a.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}
    - {host: b.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.2.0.1}]}
- name: clusters
  kind: generator
  insecure: true
  process: {command: ./right}
`

// TestMisnamed: a cluster under another name than its own is refused and blamed, and reaches no
// proxy; swaps to and from what makes it are taken by a real Envoy without one refusal, and nothing
// needs a new stream.
func TestMisnamed(t *testing.T) {
	envoy.Binary(t) // or skip
	dir := t.TempDir()
	source, err := os.ReadFile("../../examples/generator-light/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{"right": "host", "wrong": `host + map[string]string{"b.example": "-alias"}[host]`} {
		file := filepath.Join(dir, path+"-source", "main.go")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(source), "Name: host,", "Name: "+name+",", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, path), file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	b := newBenchIn(t, dir, misnamedSet)
	admin := wait.Address(t)
	e := envoy.Start(t, "edge", admin, b.plane.Bootstrap(t, "--protocol", "sotw", "--admin", admin))
	e.Ready(t)
	const active, rejected = "cluster_manager.active_clusters", "cluster_manager.cds.update_rejected"
	counted(t, e, active, 3) // the third is the control plane
	for range 2 {
		b.must("switched", "swap", "clusters", "--process", "./wrong", "--force")
		counted(t, e, active, 2)
		wait.For(t, "the plugin is blamed", func() error {
			if !strings.Contains(b.plane.Log(), `it is named \"b.example-alias\" but says of itself that it is \"b.example\"`) {
				return fmt.Errorf("the log ends with %s", b.plane.LastLines(5))
			}
			return nil
		})
		b.must("switched", "swap", "clusters", "--process", "./right")
		counted(t, e, active, 3)
	}
	counted(t, e, rejected, 0)
	if log := b.plane.Log(); strings.Contains(log, "rolled back") || strings.Count(log, "stream begins") != 1 {
		t.Errorf("something was rolled back, or began anew:\n%s", log)
	}
}
