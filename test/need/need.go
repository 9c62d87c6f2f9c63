// Package need ends tests that lack something: tools, recorded configurations, rights. They are skipped, and fail where COXSWAIN_NO_SKIPS is set, as
// continuous integration sets it: there nothing goes untested in silence.
//
// What takes long is left to `make test-all` (All), and `make test` says so. Two kinds of skips are
// not its: those by testing.Short, and those of the core for what nobody can install (another system
// than Linux, a cgroup v2 without the controller of memory); `make test` says the latter before it
// begins. It imports nothing of ours, so that every package's tests may import it.
package need

import (
	"fmt"
	"os"
	"testing"
)

// NoSkips is the variable of the environment that makes what is missing a failure.
const NoSkips = "COXSWAIN_NO_SKIPS"

// all is the variable of the environment that `make test-all` sets.
const all = "COXSWAIN_TEST_ALL"

// All ends the test unless `make test-all` runs it: it takes long, or needs servers that take long to build. Makefile finds the packages that call it.
func All(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("skipped: `make test-all` runs it")
	}
}

// Long reports whether `make test-all` runs the test, which may take longer then.
func Long() bool { return os.Getenv(all) != "" }

// Missing ends the test. The text says what is missing and how to get it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	if os.Getenv(NoSkips) != "" {
		t.Fatalf("missing, and %s allows no skips: %s", NoSkips, text)
	}
	t.Skip("skipped: " + text)
}
