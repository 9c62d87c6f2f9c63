// Package need ends tests that lack something: tools, recorded configurations, rights. They are
// skipped, and fail where COXSWAIN_NO_SKIPS is set, as continuous integration sets it: there
// nothing goes untested in silence.
//
// Two kinds of skips fail nowhere: what takes long is left to `make test-all` (All), or to another
// target (Left), and nobody can install another system than the one that there is (Impossible). All
// skips are noted in the file that COXSWAIN_SKIPPED names; `make test` prints it at its end. It
// imports nothing of ours, so that every package's tests may import it; test/waits_test.go sees
// that nobody skips without it.
package need

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NoSkips is the variable of the environment that makes what is missing a failure, Skipped the one
// that names the file in which skips are noted, a line each: the reason, a tab, and the test.
const NoSkips, Skipped = "COXSWAIN_NO_SKIPS", "COXSWAIN_SKIPPED"

// all is the variable of the environment that `make test-all` sets.
const all = "COXSWAIN_TEST_ALL"

// All ends the test unless `make test-all` runs it: it takes long, or needs servers that take long
// to build. Makefile finds the packages that call it.
func All(t testing.TB) {
	t.Helper()
	if !Long() {
		skip(t, "`make test-all` runs it")
	}
}

// Long reports whether `make test-all` runs the test, which may take longer then.
func Long() bool { return os.Getenv(all) != "" }

// Left ends the test, which another target of Makefile runs; the text says which.
func Left(t testing.TB, format string, args ...any) {
	t.Helper()
	skip(t, fmt.Sprintf(format, args...))
}

// Missing ends the test. The text says what is missing and how to get it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	if os.Getenv(NoSkips) != "" {
		t.Fatalf("missing, and %s allows no skips: %s", NoSkips, text)
	}
	skip(t, text)
}

// Program returns a server's program that Makefile builds once, into the user's cache, in a folder
// of its name and of the hash of its go.sum; target is Makefile's. The test ends where it is
// missing.
func Program(t testing.TB, sum, name, target string) string {
	t.Helper()
	text, err := os.ReadFile(sum)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(text)
	path := filepath.Join(cache, "coxswain", target+"-"+hex.EncodeToString(hash[:])[:16], name)
	if _, err := os.Stat(path); err != nil {
		Missing(t, "%s is not there; make %s builds it", path, target)
	}
	return path
}

// Impossible ends the test, which this system can't run whatever is installed; the text says why.
func Impossible(t testing.TB, format string, args ...any) {
	t.Helper()
	skip(t, fmt.Sprintf(format, args...))
}

func skip(t testing.TB, why string) {
	t.Helper()
	if err := note(why, t.Name()); err != nil {
		t.Fatalf("%s=%s: skips can't be noted there: %v", Skipped, os.Getenv(Skipped), err)
	}
	t.Skip("skipped: " + why)
}

// note adds a line in one write, so that those of several processes don't mix.
func note(why, test string) error {
	path := os.Getenv(Skipped)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\t%s\n", why, test); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
