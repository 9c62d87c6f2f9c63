package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// everyKind has a plugin of each kind, and a module.
const everyKind = `
plugins:
- {name: files, kind: config, builtin: config/file, config: {dir: config}, limits: LIMITS}
- {name: mesh, kind: config, builtin: config/mesh, limits: LIMITS}
- {name: reg, kind: registry, builtin: registry/memory, limits: LIMITS, config: {services: [
    {host: web.example, namespace: shop, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 127.0.0.1}]}]}}
- {name: serviceentry, kind: registry, builtin: registry/serviceentry, limits: LIMITS}
- {name: istio, kind: generator, builtin: generator/istio, limits: LIMITS}
- {name: mosn, kind: patch, builtin: patch/mosn, select: {metadata: {PROXY: mosn}}, limits: LIMITS}
- {name: workloads, kind: authenticator, builtin: authenticator/token, config: {file: tokens.yaml}, limits: LIMITS}
- {name: count, kind: controller, process: {command: ./count}, insecure: true, limits: LIMITS}
- {name: header, kind: patch, wasm: {path: header.wasm}, insecure: true, limits: LIMITS}
`

// TestStoppedPlugins: a plugin whose process is stopped, of whatever kind and though it owes
// nothing, is marked, shown with the time since when, and started again; what it published is
// served meanwhile.
func TestStoppedPlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	compile(t, filepath.Join(dir, "count"), "controller-count")
	compile(t, filepath.Join(dir, "header.wasm"), "patch-header", "GOOS=wasip1", "GOARCH=wasm")
	write(t, filepath.Join(dir, "tokens.yaml"), knownTokens)
	set := filepath.Join(dir, "plugins.yaml")
	write(t, set, strings.ReplaceAll(everyKind, "LIMITS", "{progress: 12s, configure: 120s}"))
	p := mesh.Start(t, program, "", "--plugins", set)
	p.Ready(t)
	all := p.Plugins(t)
	for name := range all {
		p.Signal(t, name, syscall.SIGSTOP)
	}
	for name := range all {
		wait.For(t, name+" is marked", func() error {
			if v := p.Plugins(t)[name]; v.Restarts == all[name].Restarts && (!v.Stale || v.StaleSince.IsZero() || !strings.Contains(v.StaleWhy, "no ping")) {
				return fmt.Errorf("%s is %s, stale %v: %s", name, v.State, v.Stale, v.StaleWhy)
			}
			return nil
		})
	}
	if text, err := page.Get(p.Monitoring, "/metrics"); err != nil || !strings.Contains(text, `coxswain_plugin_stale_seconds{plugin="reg"}`) {
		t.Errorf("no metric has the age: %v", err)
	}
	if _, err := p.Get("/ready"); err != nil {
		t.Errorf("proxies are not served any more: %v", err)
	}
	for name, before := range all {
		wait.For(t, name+" is started again", func() error {
			v := p.Plugins(t)[name]
			if v.Restarts == before.Restarts || v.State != "serving" || v.Stale || v.PID == before.PID || v.Rows != before.Rows {
				return fmt.Errorf("%s is %s, stale %v, restarts %d, rows %d of %d: %s", name, v.State, v.Stale, v.Restarts, v.Rows, before.Rows, v.LastError)
			}
			return nil
		})
	}
	for name := range all {
		if !strings.Contains(p.Log(), fmt.Sprintf("a plugin does not answer; what it said last stays\" plugin=%s", name)) {
			t.Errorf("the log has no warning of %s", name)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
