package need

import (
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

func (e *end) Fatalf(format string, args ...any) {
	e.failed = format + args[len(args)-1].(string)
	runtime.Goexit()
}

func (e *end) Skip(args ...any) {
	e.skipped = args[0].(string)
	runtime.Goexit()
}

func TestAll(t *testing.T) {
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
