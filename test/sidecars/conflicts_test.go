package sidecars

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// conflict is a case of testdata/conflicts/cases.yaml: two objects ask sidecars for the same
// address, port or connections.
type conflict struct {
	Name string
	// First is there before Second.
	First, Second string
	// Asks are answered before, with both, and by sidecars that start with both.
	Asks []scenario.Ask
	// Told are those of which `coxswain analyze` says what they lose.
	Told []string
}

// TestConflicts: of objects that ask for the same, sidecars refuse nothing, neither those that run
// nor those that start; who came first is served as before, and so is everybody else; who loses is
// told by `coxswain analyze`.
func TestConflicts(t *testing.T) {
	var all []conflict
	read(t, "testdata/conflicts/cases.yaml", &all)
	s := settings{protocol: "delta", authority: authority.New(t)}
	w := newWorld(t, s)
	whole := t // sidecars outlive their case
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			w.clear(t, "second.yaml")
			w.clear(t, "first.yaml")
			w.write(t, "first.yaml", "# the first\n"+c.First)
			c.answered(t, w, "the first alone")
			w.write(t, "second.yaml", c.Second)
			w.second(t)
			c.told(t, w)
			c.answered(t, w, "both")
			w.accepted(t)
			for p, account := range map[*netns.Pod]string{w.client: "client", w.server: "web"} {
				w.sidecar[p].Stop()
				w.start(whole, p, account, w.socket, s)
			}
			c.answered(t, w, "both, for sidecars that start")
			w.accepted(t)
		})
	}
}

// told sees who is told, of those that run, that sidecars can't serve both.
func (c conflict) told(t *testing.T, w *world) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "analyze", "--live", "--addr", w.plane.HTTP).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"first", "second"} {
		told := false
		for line := range strings.Lines(string(out)) {
			told = told || strings.Contains(line, "ServiceEntry shop/"+name+":") && strings.Contains(line, "(COX3013)")
		}
		if want := slices.Contains(c.Told, name); told != want {
			t.Errorf("%s is told: %v, want %v:\n%s", name, told, want, out)
		}
	}
}

// accepted waits until sidecars have all that the control plane has for them, and sees that they
// refused nothing of it.
func (w *world) accepted(t *testing.T) {
	t.Helper()
	wait.For(t, "sidecars have acknowledged everything", func() error {
		text, err := w.plane.Get("/debug/ledger")
		if err == nil && (strings.Contains(text, `"pending"`) || strings.Contains(text, `"held"`)) {
			err = fmt.Errorf("not yet: %s", text)
		}
		return err
	})
	for _, e := range []*envoy.Envoy{w.sidecar[w.client], w.sidecar[w.server]} {
		for name, n := range e.Stats(t) {
			if n > 0 && strings.HasSuffix(name, ".update_rejected") {
				t.Errorf("%s: %s = %d", e.Name, name, n)
			}
		}
	}
}

// answered waits until each of the calls is.
func (c conflict) answered(t *testing.T, w *world, with string) {
	t.Helper()
	for _, ask := range c.Asks {
		wait.For(t, fmt.Sprintf("with %s, %s at %s is answered", with, ask.Get, ask.At), func() error {
			a, _, err := exchange(w.pod(ask.Pod), ask)
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("%d %s", a.Status, a.Body)
			}
			return err
		})
	}
}

// second waits until the second is read.
func (w *world) second(t *testing.T) {
	t.Helper()
	wait.For(t, "the second is read", func() error {
		text, err := w.plane.Get("/debug/configz")
		if err == nil && !strings.Contains(text, `"second"`) {
			err = fmt.Errorf("it is not in %d bytes", len(text))
		}
		return err
	})
}
