package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestPlanOfRecorded: connected Envoys are written down, twice alike, and ask in a plan as they do
// here.
func TestPlanOfRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "delta")
	o := operator{t, w.plane.HTTP}
	dir := t.TempDir()
	file, again := filepath.Join(dir, "proxies.yaml"), filepath.Join(dir, "again.yaml")
	o.says("record proxies -o "+file, 0, file+": proxies: 2")
	o.says("record proxies -o "+again, 0)
	o.says("bug-report -o "+filepath.Join(dir, "report.zip"), 0)
	archived := filepath.Join(dir, "archived.yaml")
	o.says("record proxies --from "+filepath.Join(dir, "report.zip")+" -o "+archived, 0)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{again, archived} {
		if got, err := os.ReadFile(other); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s differs: %v\n%s\n%s", other, err, text, got)
		}
	}
	o.says("plan -f "+w.dir+" --against "+w.dir+" --proxies "+file+" --exit-code", 0, "nothing would change for 2 proxies")
	edited := filepath.Join(dir, "edited")
	if err := os.CopyFS(edited, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(edited, "routes.yaml")); err != nil {
		t.Fatal(err)
	}
	o.says("plan -f "+edited+" --against "+w.dir+" --proxies "+file+" --exit-code", 1, "RouteConfiguration, 1 proxy: ", "~gateway.test~")
}

// TestPlanAgainstLive: an edit is compared with what a control plane serves to connected Envoys. It
// is not touched: it sees no other streams, and makes no revision.
func TestPlanAgainstLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sotw")
	o := operator{t, w.plane.HTTP}
	edited := filepath.Join(t.TempDir(), "edited")
	if err := os.CopyFS(edited, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	before := o.state()
	o.says("plan -f "+edited+" --exit-code", 0, "live ("+w.plane.HTTP+") -> "+edited+": nothing would change for 2 proxies")
	if err := os.Remove(filepath.Join(edited, "routes.yaml")); err != nil {
		t.Fatal(err)
	}
	o.says("plan -f "+edited+" --exit-code -o json", 1, "RouteConfiguration", "~gateway.test~", `"proxies": 2`)
	if after := o.state(); after != before {
		t.Errorf("the control plane was touched:\n%s\n%s", before, after)
	}
}

// state is which streams and views a control plane has, and what it pushed.
func (o operator) state() (text string) {
	for _, page := range []string{"ledger", "views", "pushes", "tables"} {
		out, _ := o.runs("request", "GET", "/debug/"+page, "--addr", o.addr)
		text += out
	}
	return text
}

// TestPlanOfOwnPlugins: the second control plane has the plugins of the one that runs, or those
// that a flag names, but for controllers.
func TestPlanOfOwnPlugins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const set = `plugins:
- {name: files, kind: config, builtin: config/file}
- {name: mesh, kind: config, builtin: config/mesh}
- {name: istio, kind: generator, builtin: generator/istio}
`
	started := filepath.Join(dir, "started")
	for name, text := range map[string]string{
		"plugins.yaml": set + "- {name: writer, kind: controller, process: {command: ./writer}, insecure: true, optional: true}\n",
		"more.yaml":    set + "- {name: entries, kind: registry, builtin: registry/serviceentry}\n",
		"writer":       "#!/bin/sh\necho core $COXSWAIN_CORE. >> " + started + "\nexit 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorldOn(t, func(t testing.TB, binary, config string, args ...string) *mesh.Plane {
		return mesh.Start(t, binary, config, append(args, "--plugins", filepath.Join(dir, "plugins.yaml"))...)
	}, "delta")
	o := operator{t, w.plane.HTTP}
	o.says("plan -f "+w.dir+" --exit-code", 0, "nothing would change for 2 proxies")
	o.says("plan -f "+w.dir+" --exit-code --plugins "+filepath.Join(dir, "more.yaml"), 1, "+ outbound|", "|web.example")
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if want := fmt.Sprintf("core %d.\n", w.plane.PID()); line != want {
			t.Errorf("a controller was started by %q, not %q", line, want)
		}
	}
}
