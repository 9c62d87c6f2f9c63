package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// hold runs `coxswain hold` and returns what it says.
func hold(t *testing.T, args ...string) string {
	t.Helper()
	out, _ := exec.Command(program, append([]string{"hold"}, args...)...).CombinedOutput() // the exit code says only that something is held
	return string(out)
}

func waitHeld(t *testing.T, words string) {
	t.Helper()
	wait.For(t, "hold list says "+words, func() error {
		if got := hold(t, "list"); !strings.Contains(got, words) {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// TestAccidentsAreHeld: what slips of the hand take away is held under traffic, until it is
// repaired or let through.
func TestAccidentsAreHeld(t *testing.T) {
	mesh.RuntimeDir(t)
	w := newWorld(t, "delta")
	clients := w.traffic(t)
	all := []string{"gateway.yaml", "web.yaml", "routes.yaml"}
	steady := func(n int) {
		for _, target := range w.web("/api") {
			if got := target.Shares(context.Background(), n); got["v1-a"]+got["v1-b"]+got["v2-a"] != n {
				t.Errorf("%s: %v", target, got)
			}
		}
	}
	remove := func(names ...string) {
		for _, name := range names {
			if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, accident := range []struct {
		name string
		do   func()
	}{
		{"all files", func() { remove(all...) }},
		{"the only gateway", func() { remove("gateway.yaml") }},
		{"the only services", func() { remove("web.yaml") }},
		{"the only routes", func() { remove("routes.yaml") }},
		{"the directory, made anew", func() {
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(w.dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"a selector mistyped", func() {
			text, err := os.ReadFile(filepath.Join(w.dir, "gateway.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			place(t, filepath.Join(w.dir, "gateway.yaml"), strings.Replace(string(text), "ingressgateway", "ingresgateway", 1))
		}},
	} {
		t.Log(accident.name)
		accident.do()
		waitHeld(t, "files")
		steady(50)
		t.Log(hold(t, "show", "files"))
		if said, err := exec.Command(program, "config", "--addr", w.plane.HTTP).CombinedOutput(); err != nil ||
			!bytes.Contains(said, []byte("coxswain hold show files")) {
			t.Errorf("coxswain config does not say that anything is held: %v\n%s", err, said)
		}
		w.write(t, all...)
		waitHeld(t, "nothing is held")
		steady(50)
	}
	w.finish(t, clients)
	remove("gateway.yaml")
	waitHeld(t, "files")
	if said := hold(t, "drop", "files"); !strings.Contains(said, "starts anew") {
		t.Errorf("hold drop says %s", said)
	}
	waitHeld(t, "files")
	steady(50)
	if said := hold(t, "apply", "files"); !strings.Contains(said, "goes through") {
		t.Errorf("hold apply says %s", said)
	}
	wait.For(t, "the gateway's port is closed", func() error {
		if got := w.web("/api")[0].Shares(context.Background(), 1); got["v1-a"]+got["v1-b"]+got["v2-a"] > 0 {
			return fmt.Errorf("it answers: %v", got)
		}
		return nil
	})
	waitHeld(t, "nothing is held")
}

// TestDryRunsSayWhatTheGuardWould: of a removal, a swap and a whole plugins.yaml; and what a cut
// file has lost runs on.
func TestDryRunsSayWhatTheGuardWould(t *testing.T) {
	const more = `  - {name: more, kind: registry, builtin: registry/memory, config: {services: [
      {host: more.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.9.0.1}]}]}}
`
	b := newBench(t, swapSet+more)
	before := b.says(b.file)
	code := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"plugins"}, args...)...)
		cmd.Dir = b.dir
		out, _ := cmd.CombinedOutput()
		t.Logf("coxswain plugins %s\n%s", strings.Join(args, " "), out)
		return string(out), cmd.ProcessState.ExitCode()
	}
	place(t, filepath.Join(b.dir, "empty.yaml"), "services: []\n")
	place(t, filepath.Join(b.dir, "cut.yaml"), "plugins: []\n")
	place(t, filepath.Join(b.dir, "wrong.yaml"), "# a mistake\nservices:\n- {hots: a.example}\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"disable", "more", "--dry-run"}, 3, "1 endpoint, 1 service would go with it"},
		{[]string{"restart", "memory", "--dry-run"}, 0, "no difference"},
		{[]string{"swap", "memory", "--config", "empty.yaml", "--dry-run"}, 3, "the guard would say no: it synced with nothing"},
		{[]string{"swap", "memory", "--config", "wrong.yaml", "--dry-run"}, 1, "(wrong.yaml:3:"},
		{[]string{"plan", "plugins.yaml"}, 0, "nothing would change"},
	} {
		if got, exit := code(c.args...); exit != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%v: exit code %d, want %d and %q", c.args, exit, c.code, c.want)
		}
	}
	cut := strings.SplitAfter(swapSet, "  # What proxies get.\n")
	text := "plugins:\n  - name: istio\n" + strings.SplitAfter(cut[1], "- name: istio\n")[1]
	place(t, filepath.Join(b.dir, "cut.yaml"), text)
	if got, exit := code("plan", "cut.yaml"); exit != 3 || !strings.Contains(got, "plugins.yaml has lost 2 entries at once") {
		t.Errorf("plan of a cut file: exit code %d", exit)
	}
	if b.says(b.file) != before || len(b.clusterNames()) < 3 {
		t.Error("a dry run changed something")
	}
	clusters := len(b.clusterNames())
	place(t, b.file, text)
	b.becomes("more", "refused")
	b.becomes("memory", "refused")
	if n := len(b.clusterNames()); n != clusters {
		t.Errorf("%d of %d clusters are left", n, clusters)
	}
	place(t, b.file, before)
	b.must("kept", "disable", "more", "--force")
}
