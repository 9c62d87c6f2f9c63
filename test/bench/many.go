package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// manyChanges returns the memory before and after 10,000 changes of endpoints, in MB, with 100
// sidecars that get all of them.
func manyChanges(ctx context.Context, c config) (before, after float64, err error) {
	l := load{"W2", 1000, 100, "sotw"}
	s, f, err := running(ctx, c, l, 10)
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	defer f.Close()
	n := 0
	edit := func(changes int, gap time.Duration) error {
		for range changes {
			n++
			if err := move(s.dir, n%1000, n); err != nil {
				return err
			}
			select {
			case <-time.After(gap):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		f.Rest(2 * time.Second)
		return nil
	}
	if err := edit(200, 5*time.Millisecond); err != nil {
		return 0, 0, err
	}
	before = s.resting()
	if err := edit(10000, 5*time.Millisecond); err != nil {
		return 0, 0, err
	}
	return before, s.resting(), nil
}

// running starts the control plane on a mesh made anew, with sidecars that are configured.
func running(ctx context.Context, c config, l load, namespaces int) (*server, *fleet.Fleet, error) {
	if err := fill(c, l); err != nil {
		return nil, nil, err
	}
	s, err := start(ctx, c, coxswain, l)
	if err != nil {
		return nil, nil, err
	}
	f, a, err := fleet.Connect(ctx, fleet.Config{Address: s.xds, Sidecars: l.sidecars, Namespaces: namespaces, Patience: patience})
	if err == nil && a.Missing > 0 {
		f.Close()
		err = fmt.Errorf("%d sidecars were not configured within %v", a.Missing, patience)
	}
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	return s, f, nil
}

// resting returns the least memory that is seen in some seconds of rest.
func (s *server) resting() float64 {
	least, _ := s.memory.Read()
	for range 50 {
		time.Sleep(usage.Sampling)
		last, _ := s.memory.Read()
		least = min(least, last)
	}
	return least
}

// move gives the first endpoint of a service the address with a number.
func move(dir string, service, n int) error { return place(dir, service, address(n)) }

// place gives it an address, by rewriting its file.
func place(dir string, service int, address string) error {
	path := filepath.Join(dir, fmt.Sprintf("svc-%04d.yaml", service))
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const mark = "  - address: "
	head, rest, ok := strings.Cut(string(b), mark)
	if !ok {
		return fmt.Errorf("%s has no endpoint", path)
	}
	_, tail, _ := strings.Cut(rest, "\n")
	temporary := filepath.Join(dir, ".moved")
	if err := os.WriteFile(temporary, []byte(head+mark+address+"\n"+tail), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// address n of a network that the mesh doesn't use.
func address(n int) string { return fmt.Sprintf("10.251.%d.%d", n>>8&255, n&255) }
