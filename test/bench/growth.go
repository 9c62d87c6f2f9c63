package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// point is one measurement on an axis.
type point struct {
	X float64 `json:"x"`
	// CPU of the core and of the generator, in seconds; Connect and Change are times of 99 of 100
	// sidecars, in ms.
	Core      float64 `json:"core_cpu_s"`
	Generator float64 `json:"generator_cpu_s"`
	Connect   float64 `json:"connect_p99_ms"`
	Change    float64 `json:"change_p99_ms"`
	// Memory of all processes and of the generator, in MB.
	Peak          float64 `json:"peak_mb"`
	GeneratorPeak float64 `json:"generator_mb"`
	// GeneratorIdle is the generator's before the first sidecar, GeneratorAfter when all are gone.
	GeneratorIdle  float64 `json:"generator_idle_mb"`
	GeneratorAfter float64 `json:"generator_after_mb"`
}

// axis is what grows.
type axis struct {
	Name   string  `json:"name"`
	Points []point `json:"points"`
}

// growth measures along each axis.
func growth(ctx context.Context, c config) error {
	if err := prepare(c); err != nil {
		return err
	}
	var all []axis
	for _, a := range []struct {
		name   string
		values []int
		of     func(context.Context, config, int) (point, error)
	}{
		{"proxies (200 services, 10 views)", []int{100, 250, 500, 1000, 2000}, func(ctx context.Context, c config, n int) (point, error) {
			return grow(ctx, c, load{"G", 200, n, "sotw"}, 10)
		}},
		{"services (50 proxies, 10 views)", []int{100, 500, 1000, 2500, 5000}, func(ctx context.Context, c config, n int) (point, error) {
			return grow(ctx, c, load{"G", n, 50, "sotw"}, 10)
		}},
		{"views (1000 services, 200 proxies)", []int{1, 10, 50, 100, 200}, func(ctx context.Context, c config, n int) (point, error) {
			return grow(ctx, c, load{"G", 1000, 200, "sotw"}, n)
		}},
		{"views (5000 services, as many proxies)", []int{200}, func(ctx context.Context, c config, n int) (point, error) {
			return grow(ctx, c, load{"G", 5000, n, "sotw"}, n)
		}},
		{"endpoint changes a second (1000 services, 100 proxies)", []int{1, 10, 50, 100, 200}, rate},
		{"proxies at once, all cold (1000 services)", []int{2000}, func(ctx context.Context, c config, n int) (point, error) {
			return grow(ctx, c, load{"G", 1000, n, "sotw"}, 10)
		}},
	} {
		if !strings.Contains(a.name, c.only) {
			continue
		}
		out := axis{Name: a.name}
		for _, v := range a.values {
			p, err := a.of(ctx, c, v)
			if err != nil {
				return fmt.Errorf("%s, %d: %w", a.name, v, err)
			}
			p.X = float64(v)
			out.Points = append(out.Points, p)
			fmt.Fprintf(os.Stderr, "%s: %+v\n", a.name, p)
		}
		all = append(all, out)
	}
	printGrowth(all)
	return save(c.path("growth.json"), all)
}

// grow connects sidecars to a cold server, moves endpoints, and lets the sidecars go.
func grow(ctx context.Context, c config, l load, namespaces int) (p point, err error) {
	if err := fill(c, l); err != nil {
		return p, err
	}
	s, err := start(ctx, c, coxswain, l)
	if err != nil {
		return p, err
	}
	defer s.stop()
	pid, generator := s.cmd.Process.Pid, s.plugin("generator/istio")
	coreBefore, generatorBefore := usage.Own(pid), usage.CPU(generator)
	p.GeneratorIdle = usage.PSS(generator)
	peak := usage.Watch(generator)
	defer peak.Close()
	f, a, err := fleet.Connect(ctx, fleet.Config{Address: s.xds, Sidecars: l.sidecars, Namespaces: namespaces, Patience: patience})
	if err != nil {
		return p, err
	}
	defer f.Close()
	if a.Missing > 0 {
		return p, fmt.Errorf("%d sidecars were not configured within %v", a.Missing, patience)
	}
	f.Rest(settle)
	for i := range 5 {
		a, err := f.Change("eds", address(i), func() error { return move(s.dir, i, i) })
		if err != nil {
			return p, err
		}
		if a.Missing > 0 {
			return p, fmt.Errorf("%d sidecars did not get a change within %v", a.Missing, patience)
		}
		p.Change = max(p.Change, milliseconds(a.P99))
	}
	p.Connect = milliseconds(a.P99)
	p.Core, p.Generator = usage.Own(pid)-coreBefore, usage.CPU(generator)-generatorBefore
	_, p.Peak = s.memory.Read()
	_, p.GeneratorPeak = peak.Read()
	f.Close()
	p.GeneratorAfter = released(generator, p)
	return p, nil
}

// released returns the least memory of the generator in the two minutes after the last sidecar
// went: views stay for the first of them (viewRetention) and ten seconds, and a plugin gives back
// what it can after ten quiet ones.
func released(pid int, p point) float64 {
	least := usage.PSS(pid)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) &&
		least-p.GeneratorIdle > 0.1*(p.GeneratorPeak-p.GeneratorIdle); time.Sleep(usage.Sampling) {
		least = min(least, usage.PSS(pid))
	}
	return least
}

// rate moves some endpoints in each second for ten seconds.
func rate(ctx context.Context, c config, perSecond int) (p point, err error) {
	s, f, err := running(ctx, c, load{"G", 1000, 100, "sotw"}, 10)
	if err != nil {
		return p, err
	}
	defer s.stop()
	defer f.Close()
	pid, generator := s.cmd.Process.Pid, s.plugin("generator/istio")
	f.Rest(settle)
	coreBefore, generatorBefore := usage.Own(pid), usage.CPU(generator)
	const seconds = 10
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range seconds*perSecond - 1 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return p, ctx.Err()
		}
		if err := move(s.dir, i%900, i); err != nil {
			return p, err
		}
	}
	a, err := f.Change("eds", "10.252.0.1", func() error { return place(s.dir, 999, "10.252.0.1") })
	if err != nil {
		return p, err
	}
	p.Change = milliseconds(a.P99)
	p.Core, p.Generator = usage.Own(pid)-coreBefore, usage.CPU(generator)-generatorBefore
	_, p.Peak = s.memory.Read()
	p.GeneratorPeak = usage.PSS(generator)
	return p, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// plugin returns the process of a built-in plugin; 0: there is none.
func (s *server) plugin(name string) int {
	for _, pid := range usage.Tree(s.cmd.Process.Pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(b), name) {
			return pid
		}
	}
	return 0
}

func printGrowth(all []axis) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, a := range all {
		fmt.Fprintf(w, "\n%s\tcore CPU s\tgenerator CPU s\tconnect p99 ms\tchange p99 ms\tpeak MB\tgenerator idle, peak, after MB\t\n", a.Name)
		for _, p := range a.Points {
			fmt.Fprintf(w, "%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f, %.0f, %.0f\t\n",
				p.X, p.Core, p.Generator, p.Connect, p.Change, p.Peak, p.GeneratorIdle, p.GeneratorPeak, p.GeneratorAfter)
		}
	}
	_ = w.Flush()
}
