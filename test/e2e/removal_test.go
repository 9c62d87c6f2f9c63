package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestRemovalIsJudgedByWhatProxiesLose: many rows that no proxy sees go in one step, by file and by
// command; one that a proxy lives from doesn't, and what it would lose is named. A dry run says the
// same as the removal, and a proxy sees nothing of either.
func TestRemovalIsJudgedByWhatProxiesLose(t *testing.T) {
	const (
		registry = `
    kind: registry
    builtin: registry/memory
    config: {services: [`
		service = `{host: %, namespace: NS, exportTo: [.], ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.4.0.1}]}`
		vital   = "  - name: vital" + registry +
			`{host: vital.example, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.4.0.1}]}]}` +
			"\n"
	)
	var many []string
	for _, host := range strings.Fields("k.example l.example m.example n.example o.example p.example") {
		many = append(many, strings.NewReplacer("%", host, "NS", "elsewhere").Replace(service))
	}
	unseen := "  - name: unseen" + registry + strings.Join(many, ", ") + "]}\n"
	b := newBench(t, swapSet+unseen+vital)
	p := newProxy(t, b.plane, "follower", nil)
	const lives = "outbound|80||vital.example"
	wait.For(t, "it has what it lives from", func() error { return p.want(lives, true) })
	names := b.clusterNames()
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "k.example") }) {
		t.Fatalf("what is not exported is seen: %v", names)
	}
	pid := b.detail("vital").PID
	code := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"plugins"}, args...)...)
		out, _ := cmd.CombinedOutput()
		t.Logf("coxswain plugins %s\n%s", strings.Join(args, " "), out)
		return string(out), cmd.ProcessState.ExitCode()
	}
	const loss = "Clusters would go from"
	for _, args := range [][]string{{"disable", "vital", "--dry-run"}, {"disable", "vital"}} {
		said, exit := code(args...)
		if want := map[int]int{2: 1, 3: 3}[len(args)]; exit != want || !strings.Contains(said, loss) || !strings.Contains(said, lives) {
			t.Errorf("%v: exit code %d, not %d", args, exit, want)
		}
	}
	if said, exit := code("disable", "unseen", "--dry-run"); exit != 0 || strings.Contains(said, "guard") {
		t.Errorf("dry run of what no proxy sees: exit code %d", exit)
	}
	place(t, filepath.Join(b.dir, "next.yaml"), swapSet+vital)
	if _, exit := code("plan", filepath.Join(b.dir, "next.yaml")); exit != 0 {
		t.Errorf("plan: exit code %d", exit)
	}
	// The file loses one after the other.
	place(t, b.file, swapSet+vital)
	wait.For(t, "what no proxy sees has gone", func() error {
		if _, there := b.plane.Plugins(t)["unseen"]; there {
			return errors.New("it is there")
		}
		return nil
	})
	place(t, b.file, swapSet)
	if why := strings.Join(b.becomes("vital", swap.Refused).Reasons, "; "); !strings.Contains(why, loss) || !strings.Contains(why, lives) {
		t.Errorf("it is refused because %s", why)
	}
	if now := b.clusterNames(); !slices.Equal(now, names) || b.detail("vital").PID != pid {
		t.Errorf("a proxy has %v, and had %v", now, names)
	}
	if _, err := p.got(); err != nil {
		t.Error(err)
	}
	// Under another name it goes on.
	renamed := strings.Replace(vital, "vital", "alive", 1)
	place(t, filepath.Join(b.dir, "next.yaml"), swapSet+renamed)
	if said, exit := code("plan", filepath.Join(b.dir, "next.yaml")); exit != 3 || !strings.Contains(said, "may make up for that") {
		t.Errorf("plan: exit code %d", exit)
	}
	place(t, b.file, swapSet+renamed)
	wait.For(t, "the old name has gone", func() error {
		if _, there := b.plane.Plugins(t)["vital"]; there {
			return errors.New("it is there")
		}
		return nil
	})
	if now := b.clusterNames(); !slices.Equal(now, names) {
		t.Errorf("a proxy has %v, and had %v", now, names)
	}
	place(t, b.file, swapSet+strings.Replace(renamed, "    kind:", "    onLoss: apply\n    kind:", 1))
	b.becomes("alive", swap.Switched)
	place(t, b.file, swapSet)
	wait.For(t, "it is gone", func() error { return p.want(lives, false) })
}
