package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const token = "open-sesame-17"

// TestRecordAndReplay: what a live registry and a live generator say is recorded without secrets
// while the source changes; the same programs pass the replay with times, changed ones fail it,
// with what differs and the message that led there.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	variant(t, dir, "inventory", "testdata/inventory/main.go", "", "")
	variant(t, dir, "upper", "testdata/inventory/main.go", `string(text)`, `strings.ReplaceAll(string(text), "b.", "c.")`)
	variant(t, dir, "clusters", "../../examples/generator-light/main.go", "", "")
	variant(t, dir, "other", "../../examples/generator-light/main.go", `wire.Bytes(wire.String(nil, 1, host), 33, assignment)`,
		`wire.Bytes(wire.String(nil, 1, host+".other"), 33, assignment)`)
	hosts := filepath.Join(dir, "hosts")
	place(t, hosts, "a.example.com\n")
	config := fmt.Sprintf(`{"file": %q, "token": %q}`, hosts, token)
	b := newBenchIn(t, dir, `plugins:
  - {name: hosts, kind: registry, insecure: true, process: {command: ./inventory}, config: `+config+`}
  - {name: clusters, kind: generator, insecure: true, process: {command: ./clusters}}
`)
	sidecar := b.plane.Bootstrap(t, "--ip", "10.0.0.1")
	b.plane.Follow(t, sidecar, clusters)
	registry, generator := b.record("hosts"), b.record("clusters")
	place(t, hosts, "a.example.com\nb.example.com\n")
	wait.For(t, "the proxy's clusters follow", func() error {
		if names := b.clusterNames(); len(names) != 2 {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
	first, second := registry.stop("services +1 -0 (default/b.example.com"), generator.stop("endpoints +1 -0 (default/b.example.com")

	b.top("hosts", "clusters")
	b.must("plugin -> Synced", "replay", first)
	b.must("core   -> Attach", "replay", second)
	if text := b.says(first); strings.Contains(text, token) {
		t.Errorf("the recording has the secret:\n%s", text)
	}
	b.must("Hello, Synced", "replay", first, "--against", "./inventory", "--config", config)
	b.must("State, Done", "replay", second, "--against", "./clusters")
	b.fails("services default/b.example.com is gone (message", "replay", first, "--against", "./upper", "--config", config)
	b.fails(`Cluster "a.example.com" of connection`, "replay", second, "--against", "./other")
	b.fails("inventory refused", "replay", first, "--against", "./inventory")
	b.fails("it is no recording", "replay", "plugins.yaml")
}

// TestRecordGenerator: what Istio's generator says is recorded as hashes, for it makes secrets,
// too, and is compared; a patch says the same over both carriers; a recording ends at its limit.
func TestRecordGenerator(t *testing.T) {
	dir := t.TempDir()
	variant(t, dir, "inventory", "testdata/inventory/main.go", "", "")
	const timeout = "../../examples/patch-timeout/main.go"
	variant(t, dir, "timeout", timeout, "", "")
	variant(t, dir, "later", timeout, `"2s"`, `"30s"`)
	variant(t, dir, "timeout.wasm", timeout, "", "", "GOOS=wasip1", "GOARCH=wasm")
	hosts := filepath.Join(dir, "hosts")
	place(t, hosts, "a.example.com\n")
	b := newBenchIn(t, dir, `plugins:
  - {name: hosts, kind: registry, insecure: true, process: {command: ./inventory}, config: {file: `+hosts+`}}
  - {name: istio, kind: generator, builtin: generator/istio}
  - {name: timeout, kind: patch, insecure: true, process: {command: ./timeout}}
`)
	r, patch := b.record("istio"), b.record("timeout")
	sidecar := b.plane.Bootstrap(t, "--ip", "10.0.0.1")
	for _, typeURL := range []string{clusters, "type.googleapis.com/envoy.config.listener.v3.Listener"} {
		b.plane.Follow(t, sidecar, typeURL)
	}
	place(t, hosts, "a.example.com\nb.example.com\nc.example.com\n")
	wait.For(t, "the proxy's clusters follow", func() error {
		if names := strings.Join(b.clusterNames(), " "); !strings.Contains(names, "c.example.com") {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
	file, patches := r.stop("core   -> Want"), patch.stop("plugin -> Patched")
	b.must("Patch, Patched", "replay", patches, "--against", "./timeout")
	b.must("Patch, Patched", "replay", patches, "--against", "timeout.wasm")
	b.fails(`patch 1 of "BlackHoleCluster" has other bytes`, "replay", patches, "--against", "./later")
	b.must("Want, Wanted", "replay", file, "--against", program, "--", "plugin", "generator/istio")
	b.fails(`Cluster "PassthroughCluster" of connection 1 is gone`, "replay", file, "--against", program, "--", "plugin", "generator/grpc")
	b.must("the limit is reached", "record", "istio", "small", "--limit", "2000")
	if text := b.says(filepath.Join(dir, "small")); len(text) > 2200 {
		t.Errorf("a recording of at most 2000 bytes has %d", len(text))
	}
	b.must("has reached its limit", "replay", "small")
}

// top wants what these plugins do in a reading of `coxswain plugins top`, and in the metrics.
func (b *bench) top(names ...string) {
	b.t.Helper()
	b.must("CALLS/S", "top", "--once", "--interval", "50ms", "--addr", b.plane.HTTP)
	text, _ := b.plugins("top", "--once", "--interval", "50ms", "-o", "json", "--addr", b.plane.HTTP)
	var list []struct {
		Name          string
		Calls, Memory uint64
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		b.t.Fatal(err)
	}
	metrics, err := page.Get(b.plane.Monitoring, "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	for i, name := range names {
		if p := list[i]; p.Name != name || p.Calls == 0 || p.Memory == 0 {
			b.t.Errorf("%s: %+v", name, p)
		}
		for _, metric := range []string{"call_seconds_count{", "call_errors_total{", "cpu_seconds_total{", `bytes_total{direction="in",`} {
			if line := "coxswain_plugin_" + metric + `plugin="` + name + `"`; !strings.Contains(metrics, line) {
				b.t.Errorf("there is no %s", line)
			}
		}
	}
}

// variant builds a program of one file, with a text of it replaced.
func variant(t *testing.T, dir, name, source, old, with string, environ ...string) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), old, with)
	if old == "" {
		changed = string(text)
	} else if changed == string(text) {
		t.Fatalf("%s has no %s", source, old)
	}
	file := filepath.Join(dir, name+".d", "main.go")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, file, changed)
	mesh.Build(t, filepath.Join(dir, name), file, environ...)
}

// recorder is a `coxswain plugins record` that runs.
type recorder struct {
	b    *bench
	cmd  *exec.Cmd
	out  bytes.Buffer
	file string
}

// record begins to record, and waits until the plugin's session has begun.
func (b *bench) record(name string) *recorder {
	b.t.Helper()
	r := &recorder{b: b, file: filepath.Join(b.dir, name+".jsonl")}
	r.cmd = exec.Command(program, "plugins", "record", name, r.file)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	wait.For(b.t, "the recording has begun", func() error {
		if text, err := os.ReadFile(r.file); err != nil || bytes.Count(text, []byte("\n")) < 3 {
			return fmt.Errorf("%v: %s", err, text)
		}
		return nil
	})
	return r
}

// stop interrupts it when a message is there, and returns its file.
func (r *recorder) stop(message string) string {
	r.b.t.Helper()
	wait.For(r.b.t, "the recording has "+message, func() error {
		if text, _ := r.b.plugins("replay", r.file); !strings.Contains(text, message) {
			return fmt.Errorf("it has %s", text)
		}
		return nil
	})
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	if err := r.cmd.Wait(); err != nil {
		r.b.t.Fatalf("%v\n%s", err, r.out.String())
	}
	return r.file
}
