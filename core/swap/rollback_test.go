package swap

import (
	"strings"
	"syscall"
	"testing"
)

// ofA says what of plugin a runs, and by which process.
func (s *Swapper) ofA() (what string, pid int) {
	e, _ := s.running.now().Get("a")
	return describe(e), s.pid()
}

func swapTo(t *testing.T, s *Swapper, builtin string) {
	t.Helper()
	if c, err := s.Swap(t.Context(), "a", Request{Builtin: builtin}, Options{Ephemeral: true}); err != nil || c.State != Switched || len(c.Notes) > 0 {
		t.Fatalf("%+v, %v", c, err)
	}
}

// TestRecall: while the old instance is warm a command brings it back, that very process, and a dry
// run leaves all as it is.
func TestRecall(t *testing.T) {
	s := live(t, nil)
	if _, err := s.Rollback(t.Context(), "a", Options{}); err == nil || !strings.Contains(err.Error(), "nothing to go back to") {
		t.Errorf("before any swap: %v", err)
	}
	if _, err := s.Rollback(t.Context(), "b", Options{}); err == nil || !strings.Contains(err.Error(), "there is no plugin b") {
		t.Errorf("of nobody: %v", err)
	}
	_, old := s.ofA()
	swapTo(t, s, "registry/b")
	_, now := s.ofA()
	for range 2 {
		if c, err := s.Rollback(t.Context(), "a", Options{DryRun: true}); err != nil || c.State != Compared || c.Difference == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		if what, pid := s.ofA(); what != "builtin registry/b" || pid != now {
			t.Fatalf("after a dry run %s runs, as %d", what, pid)
		}
	}
	c, err := s.Rollback(t.Context(), "a", Options{})
	if err != nil || c.What != "rollback" || c.State != Kept || c.From != "builtin registry/b" || c.To != "builtin registry/a" {
		t.Fatalf("%+v, %v", c, err)
	}
	if what, pid := s.ofA(); what != "builtin registry/a" || pid != old {
		t.Errorf("%s runs, as %d, not as %d, which was warm", what, pid, old)
	}
	if all := s.History("a"); len(all) != 4 || all[0].State != RolledBack {
		t.Errorf("%d changes, the first %s", len(all), all[0].State)
	}
	if _, err := s.Rollback(t.Context(), "a", Options{}); err == nil || !strings.Contains(err.Error(), "nothing to go back to") {
		t.Errorf("once more: %v", err)
	}
}

// TestRollbackFurther: with no warm instance what ran before starts anew, and each rollback goes
// back one swap.
func TestRollbackFurther(t *testing.T) {
	s := liveOf(t, "plugins: [{name: a, kind: registry, builtin: registry/a, rollback: {window: 1ms}}]", nil)
	for _, builtin := range []string{"registry/b", "registry/c"} {
		swapTo(t, s, builtin)
		settles(t, s, Kept)
	}
	if _, err := s.Restart(t.Context(), "a", Options{}); err != nil {
		t.Fatal(err)
	}
	settles(t, s, Kept)
	for _, want := range []string{"builtin registry/b", "builtin registry/a"} {
		if _, err := s.Rollback(t.Context(), "a", Options{}); err != nil {
			t.Fatal(err)
		}
		settles(t, s, Kept)
		if what, _ := s.ofA(); what != want {
			t.Errorf("%s runs, not %s", what, want)
		}
	}
	if _, err := s.Rollback(t.Context(), "a", Options{}); err == nil || !strings.Contains(err.Error(), "nothing to go back to") {
		t.Errorf("once more: %v", err)
	}
}

// TestRollbackOfARollback: rollbacks while the one before has its window still go further back, not
// forth.
func TestRollbackOfARollback(t *testing.T) {
	s := live(t, nil)
	swapTo(t, s, "registry/b")
	swapTo(t, s, "registry/c")
	for _, want := range []string{"builtin registry/b", "builtin registry/a"} {
		if _, err := s.Rollback(t.Context(), "a", Options{}); err != nil {
			t.Fatal(err)
		}
		if what, _ := s.ofA(); what != want {
			t.Errorf("%s runs, not %s", what, want)
		}
	}
}

// TestRollbackAfterACrash: what the core took back by itself is not taken back again, and what was
// before that can be.
func TestRollbackAfterACrash(t *testing.T) {
	s := live(t, nil)
	swapTo(t, s, "registry/b")
	swapTo(t, s, "registry/c")
	if err := syscall.Kill(s.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	settles(t, s, RolledBack)
	if what, _ := s.ofA(); what != "builtin registry/b" {
		t.Fatalf("%s runs", what)
	}
	if _, err := s.Rollback(t.Context(), "a", Options{}); err != nil {
		t.Fatal(err)
	}
	if what, _ := s.ofA(); what != "builtin registry/a" {
		t.Errorf("%s runs", what)
	}
	if _, err := s.Rollback(t.Context(), "a", Options{}); err == nil || !strings.Contains(err.Error(), "nothing to go back to") {
		t.Errorf("once more: %v", err)
	}
}

// TestTextBefore: going back to what plugins.yaml says leaves the file as it is; to what it never
// said, too, with a word.
func TestTextBefore(t *testing.T) {
	says := parse(t, "a registry")
	ed := &editor{file: &document{path: "plugins.yaml", set: says}}
	said, _ := says.Get("a")
	if text, note := ed.textBefore(past{entry: said}); text != nil || note != "" {
		t.Errorf("%q, %q", text, note)
	}
	if text, note := ed.textBefore(past{entry: registry("a")}); text != nil || !strings.Contains(note, "--ephemeral") {
		t.Errorf("%q, %q", text, note)
	}
}
