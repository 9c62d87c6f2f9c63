package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath, Dir string
	GoFiles, Deps   []string
	TestGoFiles     []string
	XTestGoFiles    []string
}

func list(ctx context.Context, folders []string) ([]pkg, error) {
	args := []string{"list", "-json=ImportPath,Dir,GoFiles,Deps,TestGoFiles,XTestGoFiles"}
	for _, f := range folders {
		args = append(args, "./"+f+"/...")
	}
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

// overlaid is a mutant as a file that `go -overlay` takes.
type overlaid struct{ dir, file string }

func overlay(m *mutant) (*overlaid, error) {
	source, err := os.ReadFile(m.File)
	if err != nil {
		return nil, err
	}
	if sum(source) != m.Sum {
		return nil, fmt.Errorf("%s has changed meanwhile: begin again", m.File)
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
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err := errors.Join(err, os.WriteFile(changed, m.apply(source), 0o600), os.WriteFile(o.file, text, 0o600)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return o, nil
}

// try says what becomes of a mutant.
func (s *settings) try(ctx context.Context, m mutant) (result, error) {
	began := time.Now()
	r := result{mutant: m}
	err := s.judge(ctx, &r)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

func (s *settings) judge(ctx context.Context, r *result) error {
	o, err := overlay(&r.mutant)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.dir) }()
	build := exec.CommandContext(ctx, "go", "build", "-overlay", o.file, r.Package)
	if build.Run() != nil {
		r.Outcome = unbuilt
		return ctx.Err()
	}
	if r.Outcome, err = s.test(ctx, o, nil, r.Package); err != nil || r.Outcome != survived {
		return err
	}
	importers, err := s.importers(ctx, r.Package)
	if err != nil || len(importers) == 0 {
		return err
	}
	if r.Outcome, err = s.test(ctx, o, nil, importers...); err != nil || r.Outcome != survived || len(s.through) == 0 {
		return err
	}
	program := filepath.Join(o.dir, "coxswain")
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", o.file, "-o", program, "./cmd/coxswain").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	r.Outcome, err = s.test(ctx, o, []string{"COXSWAIN_PROGRAM=" + program}, s.through...)
	return err
}

// importers are the packages with tests that a package's change may break, of the folders that are changed.
func (s *settings) importers(ctx context.Context, path string) ([]string, error) {
	all, err := list(ctx, s.folders)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		for _, d := range p.Deps {
			if d == path && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
				out = append(out, p.ImportPath)
			}
		}
	}
	return out, nil
}

// test runs tests with the change.
func (s *settings) test(ctx context.Context, o *overlaid, environ []string, packages ...string) (outcome, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout+time.Minute)
	defer cancel()
	args := append([]string{"test", "-short", "-failfast", "-vet=off", "-overlay", o.file, "-timeout", s.timeout.String()}, packages...)
	cmd := exec.CommandContext(within, "go", args...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return survived, nil
	case within.Err() != nil || strings.Contains(string(out), "panic: test timed out"):
		return late, nil
	case strings.Contains(string(out), "[build failed]"):
		return unbuilt, nil
	}
	return killed, nil
}
