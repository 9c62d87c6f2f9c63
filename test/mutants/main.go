package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

type settings struct {
	folders, through []string
	sample, jobs     int
	seed             uint64
	timeout          time.Duration
	results          string
	again, own       bool
	least            float64
}

func main() {
	var s settings
	var folders, through string
	flag.StringVar(&folders, "folders", "core,plugins/generator/istio", "folders to change, with all below")
	flag.StringVar(&through, "through", "", "packages to test with a changed program, for what survives otherwise (./test/conformance,./test/e2e)")
	flag.IntVar(&s.sample, "sample", 300, "how many mutants")
	flag.IntVar(&s.jobs, "jobs", 2, "how many at once")
	flag.Uint64Var(&s.seed, "seed", 1, "which ones")
	flag.DurationVar(&s.timeout, "timeout", 3*time.Minute, "how long the tests of a package may take")
	flag.StringVar(&s.results, "results", ".cache/mutants.jsonl", "file of results, from which to go on")
	flag.BoolVar(&s.again, "again", false, "try again what survived, as tests have changed since")
	flag.BoolVar(&s.own, "own", false, "let tests of the folders themselves judge alone")
	flag.Float64Var(&s.least, "least", 0, "percentage of killed ones below which it fails")
	flag.Parse()
	s.folders = strings.Split(folders, ",")
	if through != "" {
		s.through = strings.Split(through, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (s *settings) run(ctx context.Context) error {
	all, err := find(s.folders, s.seed)
	if err != nil {
		return err
	}
	known, err := open(s.results, s.again)
	if err != nil {
		return err
	}
	defer known.close()
	for {
		sample, missing := s.take(all, known)
		if len(missing) == 0 {
			return s.report(sample, len(all))
		}
		if err := s.try(ctx, missing, known); err != nil {
			return err
		}
	}
}

// take returns the first mutants that build, as far as that is known, with those among them of
// which nothing is known yet.
func (s *settings) take(all []mutant, known *results) (sample []result, missing []*mutant) {
	for i := range all {
		if len(sample)+len(missing) == s.sample {
			break
		}
		r, ok := known.of(all[i])
		switch {
		case !ok:
			missing = append(missing, &all[i])
		case r.Outcome != unbuilt:
			sample = append(sample, r)
		}
	}
	return sample, missing
}

// report prints what survived, and how many were killed.
func (s *settings) report(tried []result, of int) error {
	killed := 0
	for _, r := range tried {
		if r.Outcome != survived {
			killed++
			continue
		}
		fmt.Printf("\n%s:%d: %s\n- %s\n+ %s\n", r.File, r.Line, r.What, strings.TrimSpace(r.Before), strings.TrimSpace(r.After))
	}
	share := 100 * float64(killed) / float64(max(1, len(tried)))
	fmt.Printf("\n%d of %d mutants killed (%.1f %%), a sample of %d by seed %d\n", killed, len(tried), share, of, s.seed)
	if share < s.least {
		return fmt.Errorf("fewer than %.0f %% are killed", s.least)
	}
	return nil
}
