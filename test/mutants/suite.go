package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath, Dir                 string
	Deps, TestGoFiles, XTestGoFiles []string
	TestImports, XTestImports       []string
}

func list(ctx context.Context, patterns ...string) ([]pkg, error) {
	const fields = "ImportPath,Dir,Deps,TestGoFiles,XTestGoFiles,TestImports,XTestImports"
	out, err := exec.CommandContext(ctx, "go", append([]string{"list", "-json=" + fields}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, p)
	}
}

func (p *pkg) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// suite is the tests of a package, in a program with switches or with one beside them.
type suite struct {
	pkg     pkg
	program *program
	// beside is the tests' own program where the switches are in another, which they start.
	beside string
	// reached are, for each mutant's number, the tests that come by it, reaches how many each test
	// comes by, and seconds how long it takes.
	reached map[int][]string
	reaches map[string]int
	seconds map[string]float64
}

// build makes the program of a package's tests and asks each test which mutants it reaches.
func (s *switched) build(ctx context.Context, p pkg) (*suite, error) {
	path := s.path(p)
	if err := compile(ctx, path, p, "-overlay", s.overlay); err != nil {
		return nil, err
	}
	built, err := openProgram(path)
	if err != nil {
		return nil, err
	}
	t := &suite{pkg: p, program: built}
	return t, t.record(ctx, path+".recording")
}

// beside does the same for tests that start a program, which is built.
func (s *switched) beside(ctx context.Context, p pkg, built *program) (*suite, error) {
	t := &suite{pkg: p, program: built, beside: s.path(p)}
	if err := compile(ctx, t.beside, p); err != nil {
		return nil, err
	}
	return t, t.record(ctx, t.beside+".recording")
}

func (s *switched) path(p pkg) string {
	return filepath.Join(s.dir, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
}

func compile(ctx context.Context, path string, p pkg, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-o", path}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, p.ImportPath)...).CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c %s: %w\n%s", p.ImportPath, err, out)
	}
	return nil
}

// record runs each test with a program that writes down what it reaches. Tests that fail with all
// switches off don't count.
func (t *suite) record(ctx context.Context, program string) error {
	t.reached, t.reaches, t.seconds = map[int][]string{}, map[string]int{}, map[string]float64{}
	if len(t.program.at) == 0 {
		return nil
	}
	log := program + ".reached"
	if err := t.program.with(program, 0, log); err != nil {
		return err
	}
	names := t.command(ctx, program, "-test.list", ".")
	out, err := names.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", t.pkg.ImportPath, err)
	}
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") {
			continue
		}
		if err := os.RemoveAll(log); err != nil {
			return err
		}
		began := time.Now()
		out, err := t.run(ctx, program, []string{name}, 5*time.Minute)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Printf("%s %s fails as it is, and doesn't count:\n%s", t.pkg.ImportPath, name, tail(out))
			continue
		}
		t.seconds[name] = time.Since(began).Seconds()
		if err := t.read(log, name); err != nil {
			return err
		}
	}
	return os.Remove(program)
}

func tail(out []byte) []byte { return out[max(0, len(out)-1000):] }

// read takes what a test has reached.
func (t *suite) read(log, test string) error {
	f, err := os.Open(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err == nil && !slices.Contains(t.reached[n], test) { // processes of one test write each for itself
			t.reached[n] = append(t.reached[n], test)
			t.reaches[test]++
		}
	}
	return nil
}

// cost is how long the tests take that reach a mutant, in seconds.
func (t *suite) cost(n int) float64 {
	sum := 0.0
	for _, test := range t.reached[n] {
		sum += t.seconds[test]
	}
	return sum
}

// command is a run of the tests' program with a program that has switches.
func (t *suite) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cmp.Or(t.beside, program), args...)
	cmd.Dir, cmd.WaitDelay = t.pkg.Dir, time.Second
	if t.beside != "" {
		cmd.Env = append(os.Environ(), "COXSWAIN_PROGRAM="+program)
	}
	return cmd
}

// run runs some tests. That they fail is an exec.ExitError, and that they took too long a
// context's.
func (t *suite) run(ctx context.Context, program string, tests []string, timeout time.Duration) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, timeout+10*time.Second)
	defer cancel()
	out, err := t.command(within, program, "-test.short", "-test.failfast", "-test.timeout", timeout.String(),
		"-test.run", "^("+strings.Join(tests, "|")+")$").CombinedOutput()
	return out, errors.Join(err, within.Err())
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: ([^\s/]+)`)

// judge says what becomes of a mutant: the tests that reach it run while it is on. What fails must
// fail twice.
func (t *suite) judge(ctx context.Context, n int) (outcome, string, error) {
	tests := t.reached[n]
	if len(tests) == 0 {
		return survived, "", nil
	}
	changed := fmt.Sprintf("%s.%d", cmp.Or(t.beside, t.program.path), n)
	if err := t.program.with(changed, n, ""); err != nil {
		return "", "", err
	}
	defer func() { _ = os.Remove(changed) }()
	if t.beside == "" {
		return t.twice(ctx, changed, tests)
	}
	// They take long. Who comes by few mutants is likely to be about this one.
	price := func(test string) float64 { return t.seconds[test] * float64(t.reaches[test]) }
	tests = slices.SortedFunc(slices.Values(tests), func(a, b string) int { return cmp.Compare(price(a), price(b)) })
	spent := 0.0
	for _, one := range tests {
		if spent += t.seconds[one]; spent > patience.Seconds() {
			break
		}
		if became, by, err := t.twice(ctx, changed, []string{one}); err != nil || became != survived {
			return became, by, err
		}
	}
	return survived, "", nil
}

// patience is how long tests that start programs may take for one mutant, if none of them fails.
const patience = 3 * time.Minute

func (t *suite) twice(ctx context.Context, changed string, tests []string) (outcome, string, error) {
	limit := 20 * time.Second
	for _, test := range tests {
		limit += time.Duration(5 * t.seconds[test] * float64(time.Second))
	}
	became := killed
	for range 2 {
		out, err := t.run(ctx, changed, tests, limit)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err == nil:
			return survived, "", nil
		case errors.Is(err, context.DeadlineExceeded) || bytes.Contains(out, []byte("panic: test timed out")):
			became = late
			continue
		case !errors.As(err, new(*exec.ExitError)):
			return "", "", err
		}
		if at := failed.FindSubmatch(out); at != nil {
			tests = []string{string(at[1])}
		}
	}
	if len(tests) > 3 {
		return became, t.pkg.ImportPath, nil // its process has ended
	}
	return became, t.pkg.ImportPath + " " + strings.Join(tests, " "), nil
}
