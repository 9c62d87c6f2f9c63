package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// round is what one server did under one load.
type round struct {
	Cold phase `json:"cold"`
	// Warm: all sidecars come back after all had gone. Beside: they come while one of each
	// namespace stayed.
	Warm   phase  `json:"warm"`
	Beside phase  `json:"beside"`
	Server string `json:"server"`
	// Changes by name of the edit.
	Changes map[string][]phase `json:"changes"`
	// PSS of all processes: the largest, and at the end, in MB.
	Peak   float64 `json:"peak_mb"`
	After  float64 `json:"after_mb"`
	Broken int64   `json:"broken_streams"`
	// What each process had when all had most.
	Processes map[string]float64 `json:"processes_mb"`
}

// report is everything that was measured.
type report struct {
	Taken   time.Time    `json:"taken"`
	Commit  string       `json:"commit"`
	Rounds  int          `json:"rounds"`
	Repeats int          `json:"repeats"`
	Loads   []loadReport `json:"loads"`
}

type loadReport struct {
	Name     string             `json:"name"`
	Sidecars int                `json:"sidecars"`
	Bytes    map[string]int64   `json:"bytes"`  // per sidecar, what the control plane sends
	Istiod   map[string]int64   `json:"istiod"` // what istiod sent for the same mesh
	Rounds   map[string][]round `json:"rounds"` // by server
}

// measure runs all loads. Each is printed and saved when it is done.
func measure(ctx context.Context, c config) error {
	all := loads(c)
	if len(all) == 0 {
		return fmt.Errorf("there is no load %q", c.only)
	}
	if err := prepare(c); err != nil {
		return err
	}
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	r := &report{Taken: time.Now(), Commit: strings.TrimSpace(string(commit)), Rounds: c.rounds, Repeats: repeats(c, coxswain)}
	printHead(os.Stdout, r)
	dumped := map[string]bool{}
	for _, l := range all {
		if !dumped[l.mesh] {
			if err := dump(ctx, c, l); err != nil {
				return fmt.Errorf("%s: %w", l.mesh, err)
			}
			dumped[l.mesh] = true
		}
		lr := loadReport{
			Name: l.name(), Sidecars: l.sidecars, Rounds: map[string][]round{},
			Istiod: sizes(filepath.Join(c.peers, l.mesh)), Bytes: sizes(c.path("dump", l.mesh)),
		}
		for i := range c.rounds {
			if err := turn(ctx, c, l, i, &lr); err != nil {
				return err
			}
		}
		r.Loads = append(r.Loads, lr)
		printLoad(os.Stdout, lr)
		if err := save(c.path("result.json"), r); err != nil {
			return err
		}
	}
	return nil
}

// turn runs each server once; who is first changes from round to round.
func turn(ctx context.Context, c config, l load, i int, lr *loadReport) error {
	servers := []string{coxswain, peer, floor}
	if c.profile {
		servers = servers[:1]
	}
	for j := range servers {
		kind := servers[(i+j)%len(servers)]
		began := time.Now()
		r, err := once(ctx, c, kind, l)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", l.name(), kind, err)
		}
		lr.Rounds[kind] = append(lr.Rounds[kind], *r)
		fmt.Fprintf(os.Stderr, "%s round %d %s: %.0f s\n", l.name(), i+1, kind, time.Since(began).Seconds())
	}
	return nil
}

// once runs one server under one load.
func once(ctx context.Context, c config, kind string, l load) (*round, error) {
	if err := fill(c, l); err != nil {
		return nil, err
	}
	s, err := start(ctx, c, kind, l)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	r := &round{Server: kind, Changes: map[string][]phase{}}
	for _, p := range []*phase{&r.Cold, &r.Warm} { // each time all sidecars come, and go again
		if err := s.visit(ctx, c, l, r, p); err != nil {
			return nil, err
		}
	}
	release, err := hold(c, s, l.mode)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.held(ctx); err != nil {
		return nil, err
	}
	var made []edit
	for _, e := range edits() {
		if s.touch(e, l.mode == "delta") != "" {
			made = append(made, e)
		}
	}
	if c.profile {
		s.signal()
		defer s.signal()
	}
	beside, err := connect(ctx, c, s, l, made, repeats(c, kind))
	if err != nil {
		return nil, err
	}
	r.Beside, r.Broken = beside.Connect, r.Broken+beside.Errors
	for i, e := range made {
		r.Changes[e.name] = beside.Changes[i].Runs
	}
	r.After, r.Peak = s.memory.Read()
	r.Processes = s.memory.Processes()
	return r, nil
}

// visit lets all sidecars connect and go again, and waits until the server has nothing to do any
// more.
func (s *server) visit(ctx context.Context, c config, l load, r *round, p *phase) error {
	if c.profile {
		s.signal()
		defer s.signal()
	}
	all, err := connect(ctx, c, s, l, nil, 0)
	if err != nil {
		return err
	}
	*p, r.Broken = all.Connect, r.Broken+all.Errors
	return s.held(ctx)
}

// held waits until the server has done nothing for a while: nobody waits for anything. A fixed time
// would let what a busy machine had not finished by then count as part of the next connect.
func (s *server) held(ctx context.Context) error {
	const quiet, most = 5, 150 // of a fifth of a second
	last := -1.0
	for i, still := 0, 0; i < most && still < quiet; i++ {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		now := 0.0
		now += usage.CPU(s.cmd.Process.Pid)
		if still++; now-last > 0.01 {
			still = 0
		}
		last = now
	}
	return nil
}

// prepare writes what all runs share.
func prepare(c config) error {
	if c.profile {
		if err := os.MkdirAll(c.path("profile"), 0o755); err != nil {
			return err
		}
	}
	return writeSet(c.set, c.path("plugins.yaml"), c.profile)
}

// fill makes a load's mesh anew.
func fill(c config, l load) error {
	dir := c.path("mesh", l.mesh)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	out, err := exec.Command(c.tool("meshgen"), "-dir", dir, "-services", strconv.Itoa(l.services), "-endpoints", "10").CombinedOutput()
	if err != nil {
		return fmt.Errorf("meshgen: %w: %s", err, out)
	}
	return nil
}

// dump keeps what the control plane sends to one sidecar: the other servers send that.
func dump(ctx context.Context, c config, l load) error {
	if err := fill(c, l); err != nil {
		return err
	}
	s, err := start(ctx, c, coxswain, l)
	if err != nil {
		return err
	}
	defer s.stop()
	one := l
	one.sidecars, one.mode = 1, "sotw"
	dir := c.path("dump", l.mesh)
	if _, err := connect(ctx, c, s, one, nil, 0, "-dump", dir); err != nil {
		return err
	}
	if len(sizes(dir)) < 4 {
		return errors.New("the control plane did not send all types")
	}
	return nil
}

// sizes of the responses in a directory, by type.
func sizes(dir string) map[string]int64 {
	all := map[string]int64{}
	for _, t := range []string{"cds", "eds", "lds", "rds"} {
		if i, err := os.Stat(filepath.Join(dir, t+".pb")); err == nil {
			all[t] = i.Size()
		}
	}
	return all
}
