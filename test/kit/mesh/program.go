package mesh

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Main is the TestMain of a package that tests the program: it builds the program, puts its path
// into program, runs the tests (m.Run, or LeakFree of m) and exits.
func Main(program *string, run func() int) {
	start(program, run, Race, cmp.Or(os.Getenv("COXSWAIN_PROGRAM"), os.Getenv("COXSWAIN_TEST_PROGRAM")))
}

// Quick is Main for packages whose program the race detector watches in `make test-all` alone: it
// makes a program several times slower, and those of test/misbehave, test/xds and test/traffic,
// which are watched each time, run the same core and most of the same plugins.
func Quick(program *string, run func() int) {
	if need.Long() {
		Main(program, run)
	} else {
		Plain(program, run)
	}
}

// Plain is Main with a program without the race detector, for tests of what users run as they run
// it: the detector makes a module's start many times slower.
func Plain(program *string, run func() int) {
	start(program, run, false, plain())
}

// plain is the path of a program without the race detector that is built already; none: "".
func plain() string {
	return cmp.Or(os.Getenv("COXSWAIN_PROGRAM"), os.Getenv("COXSWAIN_TEST_PLAIN"))
}

// PlainProgram returns Plain's program for one test of a package whose others run Main's.
func PlainProgram(t testing.TB) string {
	t.Helper()
	binary, remove, err := build(false, plain())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	return binary
}

func start(program *string, run func() int, race bool, built string) {
	binary, remove, err := build(race, built)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*program = binary
	dir, clean, err := runtimeDir()
	if err != nil {
		remove()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.Setenv(runtimeVariable, dir)
	code := run()
	clean()
	remove()
	os.Exit(code)
}

// LeakFree runs tests that fail if they leave goroutines behind.
func LeakFree(m goleak.TestingM) func() int {
	return func() (code int) {
		wait.Main(m, goleak.Cleanup(func(c int) { code = c }))
		return code
	}
}

// build builds the program into a new directory and returns its path. remove deletes it. Where
// COXSWAIN_PROGRAM names one that is built already, or COXSWAIN_TEST_PROGRAM (for Plain
// COXSWAIN_TEST_PLAIN) one for tests alone, it is taken instead: to link it once is enough.
func build(race bool, built string) (binary string, remove func(), err error) {
	if built != "" {
		_, err := os.Stat(built) // so that go test knows that its result depends on it
		return built, func() {}, err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", nil, fmt.Errorf("go list: %w", err)
	}
	dir, err := os.MkdirTemp("", "coxswain-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "coxswain")
	args := []string{"build", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/coxswain")...)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, remove, nil
}
