package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// trial is what is being found out about mutants.
type trial struct {
	*settings
	known    *results
	switched *switched
	packages []pkg // all of the module
	spent    map[*mutant]time.Duration
	open     []*mutant
}

// try finds out what becomes of mutants: first the tests of the folders that are changed judge
// them, then those of all packages outside of test that have the changed ones in them, then those
// of s.through with a changed program.
func (s *settings) try(ctx context.Context, mutants []*mutant, known *results) error {
	packages, err := list(ctx, "./...")
	if err != nil {
		return err
	}
	made, err := switches(ctx, mutants, patterns(s.folders))
	if err != nil {
		return err
	}
	defer func() { _ = made.remove() }()
	t := &trial{s, known, made, packages, map[*mutant]time.Duration{}, mutants}
	fmt.Printf("%d mutants, %d of them behind switches\n", len(mutants), len(made.mutants))
	inside, outside := t.tested()
	if s.own {
		outside = nil
	}
	for _, of := range [][]pkg{inside, outside} {
		if err := t.stage(ctx, of); err != nil {
			return err
		}
	}
	if err := t.throughProgram(ctx); err != nil {
		return err
	}
	for _, m := range t.open {
		if err := known.add(result{mutant: *m, Outcome: survived, Seconds: t.spent[m].Seconds()}); err != nil {
			return err
		}
	}
	return nil
}

// tested returns the packages that have tests, those in the folders that are changed, and all
// others but test's.
func (t *trial) tested() (inside, outside []pkg) {
	wd, _ := os.Getwd()
	for _, p := range t.packages {
		name, err := filepath.Rel(wd, p.Dir)
		if !p.tested() || err != nil {
			continue
		}
		within := func(folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
		switch {
		case slices.ContainsFunc(t.folders, within):
			inside = append(inside, p)
		case !within("test"):
			outside = append(outside, p)
		}
	}
	return inside, outside
}

// stage lets the tests of packages judge the mutants that are open.
func (t *trial) stage(ctx context.Context, packages []pkg) error {
	if len(t.open) == 0 || len(packages) == 0 {
		return nil
	}
	suites, err := t.build(ctx, packages, t.switched.build)
	if err != nil {
		return err
	}
	return t.each(ctx, func(ctx context.Context, m *mutant) (outcome, string, error) {
		if m.number > 0 {
			return judge(ctx, suites, m)
		}
		return t.byItself(ctx, m, packages)
	})
}

// build makes the suites of packages, some at once.
func (t *trial) build(
	ctx context.Context, packages []pkg, build func(context.Context, pkg) (*suite, error),
) ([]*suite, error) {
	suites := make([]*suite, len(packages))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(max(1, t.jobs))
	for i, p := range packages {
		group.Go(func() (err error) {
			suites[i], err = build(within, p)
			return err
		})
	}
	return suites, group.Wait()
}

// each asks about each open mutant, some at once, and closes those that don't survive.
func (t *trial) each(ctx context.Context, ask func(context.Context, *mutant) (outcome, string, error)) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(max(1, t.jobs))
	outcomes := make([]outcome, len(t.open))
	spent := make([]time.Duration, len(t.open))
	for i, m := range t.open {
		group.Go(func() error {
			began := time.Now()
			became, by, err := ask(within, m)
			spent[i] = time.Since(began)
			if outcomes[i] = became; err != nil || became == survived {
				return err
			}
			return t.known.add(result{mutant: *m, Outcome: became, By: by, Seconds: (t.spent[m] + spent[i]).Seconds()})
		})
	}
	err := group.Wait()
	var open []*mutant
	for i, m := range t.open {
		if t.spent[m] += spent[i]; outcomes[i] == survived {
			open = append(open, m)
		}
	}
	t.open = open
	return err
}

// judge asks the suites, that of the mutant's own package first, then the cheapest.
func judge(ctx context.Context, suites []*suite, m *mutant) (outcome, string, error) {
	cost := func(t *suite) float64 {
		if t.pkg.ImportPath == m.Package {
			return -1
		}
		return t.cost(m.number)
	}
	suites = slices.SortedFunc(slices.Values(suites), func(a, b *suite) int { return cmp.Compare(cost(a), cost(b)) })
	for _, suite := range suites {
		if became, by, err := suite.judge(ctx, m.number); err != nil || became != survived {
			return became, by, err
		}
	}
	return survived, "", nil
}

// overlaid is a mutant as a file that `go -overlay` takes.
type overlaid struct{ dir, file string }

func overlay(m *mutant) (*overlaid, error) {
	source, err := m.read()
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(m.File)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, err
	}
	o := &overlaid{dir, filepath.Join(dir, "overlay.json")}
	changed := filepath.Join(dir, "changed.go")
	err = errors.Join(os.WriteFile(changed, m.apply(source), 0o600), writeOverlay(o.file, map[string]string{path: changed}))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return o, nil
}

// byItself builds the tests of packages with nothing but this change.
func (t *trial) byItself(ctx context.Context, m *mutant, packages []pkg) (outcome, string, error) {
	o, err := overlay(m)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(o.dir) }()
	if exec.CommandContext(ctx, "go", "build", "-overlay", o.file, m.Package).Run() != nil {
		return unbuilt, "", ctx.Err()
	}
	var others []string
	for _, p := range packages {
		if p.ImportPath == m.Package {
			if became, by, err := t.test(ctx, o, p.ImportPath); err != nil || became != survived {
				return became, by, err
			}
		} else if t.has(p, m.Package) {
			others = append(others, p.ImportPath)
		}
	}
	if len(others) == 0 {
		return survived, "", nil
	}
	return t.test(ctx, o, others...)
}

// has reports whether a package's tests have another package in them.
func (t *trial) has(p pkg, other string) bool {
	if slices.Contains(p.Deps, other) {
		return true
	}
	for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
		if imported == other {
			return true
		}
		at := slices.IndexFunc(t.packages, func(q pkg) bool { return q.ImportPath == imported })
		if at >= 0 && slices.Contains(t.packages[at].Deps, other) {
			return true
		}
	}
	return false
}

// throughProgram lets the tests of t.through judge a program with the mutants that are open. Those
// without a switch would need a program each: nothing more is asked about them.
func (t *trial) throughProgram(ctx context.Context) error {
	if len(t.open) == 0 || len(t.through) == 0 {
		return nil
	}
	path := filepath.Join(t.switched.dir, "coxswain")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", t.switched.overlay, "-o", path, "./cmd/coxswain")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	built, err := openProgram(path)
	if err != nil {
		return err
	}
	packages, err := list(ctx, t.through...)
	if err != nil {
		return err
	}
	suites, err := t.build(ctx, packages, func(ctx context.Context, p pkg) (*suite, error) {
		return t.switched.beside(ctx, p, built)
	})
	if err != nil {
		return err
	}
	return t.each(ctx, func(ctx context.Context, m *mutant) (outcome, string, error) {
		if m.number == 0 {
			return survived, "", nil
		}
		return judge(ctx, suites, m)
	})
}

// test runs tests with an overlay. What fails must fail twice.
func (t *trial) test(ctx context.Context, o *overlaid, packages ...string) (outcome, string, error) {
	args := []string{"test", "-count=1", "-short", "-failfast", "-vet=off", "-timeout", t.timeout.String(), "-overlay", o.file}
	for range 2 {
		within, cancel := context.WithTimeout(ctx, t.timeout+time.Minute)
		cmd := exec.CommandContext(within, "go", append(args, packages...)...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		over := within.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err == nil:
			return survived, "", nil
		case over || bytes.Contains(out, []byte("panic: test timed out")):
			return late, strings.Join(packages, " "), nil
		case bytes.Contains(out, []byte("[build failed]")):
			return unbuilt, "", nil
		}
		var bad []string
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "FAIL" && strings.Contains(f[1], "/") {
				bad = append(bad, f[1])
			}
		}
		if len(bad) > 0 {
			packages = bad
		}
	}
	return killed, strings.Join(packages, " "), nil
}
