package need

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// end notes how a test ended.
type end struct {
	testing.TB
	failed, skipped string
}

func (e *end) Helper() {}

func (e *end) Name() string { return "TestEnds" }

func (e *end) Fatalf(format string, args ...any) {
	e.failed = format + args[len(args)-1].(string)
	runtime.Goexit()
}

func (e *end) Skip(args ...any) {
	e.skipped = args[0].(string)
	runtime.Goexit()
}

func TestAll(t *testing.T) {
	t.Setenv(Skipped, "") // the run that this test is of has skipped nothing
	for value, runs := range map[string]bool{"": false, "1": true} {
		t.Setenv(all, value)
		e := &end{}
		done := make(chan struct{})
		go func() { defer close(done); All(e) }()
		<-done
		if (e.skipped == "") != runs {
			t.Errorf("%q: skipped %q", value, e.skipped)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Setenv(Skipped, "")
	for value, fails := range map[string]bool{"": false, "1": true} {
		t.Setenv(NoSkips, value)
		e := &end{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Missing(e, "no %s: install it", "Node.js")
		}()
		<-done
		if (e.failed != "") != fails || (e.skipped != "") == fails || !strings.Contains(e.failed+e.skipped, "no Node.js: install it") {
			t.Errorf("%q: failed %q, skipped %q", value, e.failed, e.skipped)
		}
	}
}

// TestNoted: each skip is noted with its reason; what fails is none.
func TestNoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skipped")
	t.Setenv(Skipped, path)
	t.Setenv(all, "")
	t.Setenv(NoSkips, "1")
	for _, ends := range []func(testing.TB){
		All,
		func(t testing.TB) { Left(t, "`make %s` runs it", "parity-live") },
		func(t testing.TB) { Missing(t, "no %s: install it", "Node.js") },
		func(t testing.TB) { Impossible(t, "it is of Linux alone") },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			ends(&end{})
		}()
		<-done
	}
	const want = "`make test-all` runs it\tTestEnds\n`make parity-live` runs it\tTestEnds\nit is of Linux alone\tTestEnds\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}
