package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// serves waits until a sidecar has, or has not, a cluster with a name in its own.
func (b *bench) serves(name string, want bool) {
	b.t.Helper()
	wait.For(b.t, fmt.Sprintf("%s is served: %v", name, want), func() error {
		got := b.clusterNames()
		if slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, name) }) != want {
			return fmt.Errorf("clusters %v", got)
		}
		return nil
	})
}

// TestPinCommand: a plugin that is pinned needs no `insecure`, and nothing else is started in its
// place until the file is pinned again.
func TestPinCommand(t *testing.T) {
	dir := t.TempDir()
	variant(t, dir, "inventory", "testdata/inventory/main.go", "", "")
	variant(t, dir, "other", "testdata/inventory/main.go", `string(text)`, `strings.ReplaceAll(string(text), "b.", "c.")`)
	place(t, filepath.Join(dir, "hosts"), "b.example.com\n")
	entry := "  - {name: %s, kind: registry, insecure: true, process: {command: ./inventory}, config: {file: " + filepath.Join(dir, "hosts") + "}}\n"
	text := "plugins:\n" + fmt.Sprintf(entry, "hosts") + "  - {name: istio, kind: generator, builtin: generator/istio}\n" + fmt.Sprintf(entry, "twin")
	b := newBenchIn(t, dir, text)
	b.serves("b.example.com", true)

	b.fails("has no plugin nobody", "pin", b.file, "nobody")
	if b.says(b.file) != text {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
	b.must("hosts is pinned", "pin", b.file, "hosts")
	if now := b.says(b.file); strings.Count(now, "sha256: ") != 1 || strings.Count(now, "insecure: true") != 1 {
		t.Errorf("plugins.yaml became\n%s", now)
	}
	b.becomes("hosts", swap.Switched)
	if err := os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "inventory")); err != nil {
		t.Fatal(err)
	}
	b.fails("sha256", "restart", "hosts")
	b.serves("b.example.com", true)
	b.must("twin is pinned", "pin", b.file)
	b.serves("c.example.com", true)
	b.serves("b.example.com", false)
}

// TestSwapBuiltin: a built-in plugin takes the place of a program, in the file, too.
func TestSwapBuiltin(t *testing.T) {
	dir := t.TempDir()
	variant(t, dir, "inventory", "testdata/inventory/main.go", "", "")
	place(t, filepath.Join(dir, "hosts"), "a.example.com\n")
	b := newBenchIn(t, dir,
		"plugins:\n  - name: hosts # whatever it is\n    kind: registry\n    insecure: true\n    process: {command: ./inventory}\n    config: {file: "+
			filepath.Join(dir, "hosts")+"}\n  - {name: istio, kind: generator, builtin: generator/istio}\n")
	b.serves("a.example.com", true)
	place(t, filepath.Join(dir, "memory.yaml"), `services: [
  {host: a.example.com, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]},
  {host: b.example.com, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}]
`)
	before := b.says(b.file)
	b.fails(`did you mean "registry/memory"`, "swap", "hosts", "--builtin", "registry/memry", "--config", "memory.yaml", "--force")
	if b.says(b.file) != before {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
	b.must("process ./inventory -> builtin registry/memory", "swap", "hosts", "--builtin", "registry/memory", "--config", "memory.yaml", "--force")
	b.serves("b.example.com", true)
	if now := b.says(b.file); !strings.Contains(now, "  - name: hosts # whatever it is\n") ||
		!strings.Contains(now, "builtin: registry/memory\n") || strings.Contains(now, "process:") {
		t.Errorf("plugins.yaml became\n%s", now)
	}
	if d := b.detail("hosts"); d.Carrier != "builtin" || d.State != "serving" {
		t.Errorf("it is %s, %s", d.Carrier, d.State)
	}
}

// TestSwapEphemeral: what is swapped in for the moment is in no file, so that it ends with the
// control plane; the built-in set can be changed only so.
func TestSwapEphemeral(t *testing.T) {
	b := newBench(t, swapSet)
	place(t, filepath.Join(b.dir, "c.yaml"),
		"services: [{host: c.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}]\n")
	b.must("switched", "swap", "memory", "--config", "c.yaml", "--ephemeral", "--force")
	b.serves("c.example", true)
	if b.says(b.file) != swapSet {
		t.Errorf("plugins.yaml became\n%s", b.says(b.file))
	}
	// It lasts while others are changed.
	place(t, b.file, strings.Replace(swapSet, "# What proxies get.", "# What proxies are given.", 1))
	b.must("switched", "restart", "istio")
	b.serves("c.example", true)
	if code := b.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.plane = b.plane.Again(t)
	b.plane.Ready(t)
	b.serves("b.example", true)
	b.serves("c.example", false)
	b.plane.Stop(t)

	b.plane = mesh.Start(t, program, t.TempDir())
	b.plane.Ready(t)
	const jwks = "jwks"
	b.fails("give --ephemeral, or start with --plugins FILE", "disable", jwks)
	b.must("kept", "disable", jwks, "--ephemeral")
	b.must("kept", "enable", jwks, "--ephemeral")
}

// TestRecordFor: a recording ends by itself when its time is over, and is whole.
func TestRecordFor(t *testing.T) {
	b := newBench(t, swapSet)
	file := filepath.Join(b.dir, "memory.jsonl")
	for during := time.Second; ; during *= 2 { // the plugin's start, which may take long here, is part of it
		text, ok := b.plugins("record", "memory", file, "--for", during.String())
		if ok && !strings.Contains(text, "the recording ended") {
			if said, ok := b.plugins("replay", file); ok && strings.Contains(said, "plugin -> Synced") {
				break
			}
		}
		if during > time.Minute {
			t.Fatal("it never has the plugin's session")
		}
	}
	if out, err := exec.Command(program, "plugins", "record", "memory", file, "--for", "soon").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "soon") {
		t.Errorf("%v %s", err, out)
	}
}
