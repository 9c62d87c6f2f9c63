package main

import (
	"bufio"
	"bytes"
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
	args := append([]string{"list", "-json=ImportPath,Dir,Deps,TestGoFiles,XTestGoFiles,TestImports,XTestImports"}, patterns...)
	out, err := exec.CommandContext(ctx, "go", args...).Output()
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

// suite is the tests of a package in a program with switches.
type suite struct {
	pkg     pkg
	program *program
	// reached are, for each mutant's number, the tests that come by it, and seconds how long each test takes.
	reached map[int][]string
	seconds map[string]float64
}

// build makes the program of a package's tests and asks each test which mutants it reaches. Tests that fail with all switches off don't count.
func (s *switched) build(ctx context.Context, p pkg) (*suite, error) {
	path := filepath.Join(s.dir, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", s.overlay, "-o", path, p.ImportPath).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c %s: %w\n%s", p.ImportPath, err, out)
	}
	built, err := openProgram(path)
	if err != nil {
		return nil, err
	}
	t := &suite{p, built, map[int][]string{}, map[string]float64{}}
	if len(built.at) == 0 {
		return t, nil
	}
	log := path + ".reached"
	recording := path + ".recording"
	if err := built.with(recording, 0, log); err != nil {
		return nil, err
	}
	names := exec.CommandContext(ctx, recording, "-test.list", ".")
	names.Dir = p.Dir
	out, err := names.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") {
			continue
		}
		if err := os.RemoveAll(log); err != nil {
			return nil, err
		}
		began := time.Now()
		out, err := t.run(ctx, recording, []string{name}, 5*time.Minute)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			fmt.Printf("%s %s fails as it is, and doesn't count:\n%s", p.ImportPath, name, tail(out))
			continue
		}
		t.seconds[name] = time.Since(began).Seconds()
		if err := t.read(log, name); err != nil {
			return nil, err
		}
	}
	return t, os.Remove(recording)
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

// run runs some tests.
func (t *suite) run(ctx context.Context, program string, tests []string, timeout time.Duration) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, timeout+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(within, program, "-test.short", "-test.failfast", "-test.timeout", timeout.String(), "-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir, cmd.WaitDelay = t.pkg.Dir, time.Second
	out, err := cmd.CombinedOutput()
	return out, errors.Join(err, within.Err())
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: ([^\s/]+)`)

// judge says what becomes of a mutant: the tests that reach it run while it is on. What fails must fail twice.
func (t *suite) judge(ctx context.Context, n int) (outcome, string, error) {
	tests := t.reached[n]
	if len(tests) == 0 {
		return survived, "", nil
	}
	changed := fmt.Sprintf("%s.%d", t.program.path, n)
	if err := t.program.with(changed, n, ""); err != nil {
		return "", "", err
	}
	defer func() { _ = os.Remove(changed) }()
	for range 2 {
		limit := 20*time.Second + 5*time.Duration(t.cost(n)*float64(time.Second))
		out, err := t.run(ctx, changed, tests, limit)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err == nil:
			return survived, "", nil
		case errors.Is(err, context.DeadlineExceeded) || bytes.Contains(out, []byte("panic: test timed out")):
			return late, t.pkg.ImportPath, nil
		}
		if at := failed.FindSubmatch(out); at != nil {
			tests = []string{string(at[1])}
		}
	}
	return killed, t.pkg.ImportPath + " " + strings.Join(tests, " "), nil
}
