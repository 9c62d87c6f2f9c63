package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// variant is one of two forms of the control plane that are compared with each other.
type variant struct {
	kind, program string
	args          []string
	// watchers is how many clients follow the page's events.
	watchers int
}

// offSettings turn off what is kept of pushes: what they are for, whom they reach, what proxies
// were served at earlier revisions, and which resources they refuse.
var offSettings = []string{"--followPushes=false", "--historyRevisions=0", "--quarantine=false"}

// mostWatchers is how many clients may follow the page's events.
const mostWatchers = 20

// variants are the control plane with what it keeps of pushes, and without; or while the page is
// looked at, and while it isn't; or with traces of all pushes, and without; or, where another
// program is given, as that is, and as it is.
func (c *config) variants() [2]variant {
	switch {
	case c.beside != "":
		return [2]variant{{"this", c.coxswain, nil, 0}, {"beside", c.beside, nil, 0}}
	case c.watched:
		return [2]variant{{"watched", c.coxswain, nil, mostWatchers}, {"not watched", c.coxswain, nil, 0}}
	case c.traced:
		return [2]variant{{"traced", c.coxswain, []string{"--traceEndpoint", c.collector.url, "--traceRatio", "1"}, 0}, {"not traced", c.coxswain, nil, 0}}
	}
	return [2]variant{{"kept", c.coxswain, nil, 0}, {"not kept", c.coxswain, offSettings, 0}}
}

func (c *config) variant(kind string) (variant, bool) {
	for _, v := range c.variants() {
		if v.kind == kind {
			return v, true
		}
	}
	return variant{coxswain, c.coxswain, nil, 0}, kind == coxswain
}

// pair compares two variants of the control plane, in turns, under one load.
func pair(ctx context.Context, c config) error {
	l := load{"W2", 1000, c.sidecars, "sotw"}
	if err := prepare(c); err != nil {
		return err
	}
	if c.traced {
		to, err := collect(ctx)
		if err != nil {
			return err
		}
		c.collector = to
		defer func() { fmt.Printf("%d spans were sent\n", to.spans.Load()) }()
	}
	of := map[string][]round{}
	for i := range c.rounds {
		both := c.variants()
		if i%2 == 1 {
			slices.Reverse(both[:])
		}
		for _, v := range both {
			began := time.Now()
			r, err := once(ctx, c, v.kind, l)
			if err != nil {
				return fmt.Errorf("%s: %w", v.kind, err)
			}
			of[v.kind] = append(of[v.kind], *r)
			fmt.Fprintf(os.Stderr, "round %d %s: %.0f s\n", i+1, v.kind, time.Since(began).Seconds())
		}
	}
	fmt.Printf("%s: of %d rounds with %d changes of a kind the median, and the lowest and highest of each\n", l.name(), c.rounds, c.repeats)
	for _, v := range c.variants() {
		fmt.Printf("%s: %s %s\n", v.kind, v.program, strings.Join(v.args, " "))
	}
	fmt.Println()
	printPair(os.Stdout, c.variants(), of)
	return save(c.path("pair.json"), of)
}

// printPair writes a line for each figure; the last are all CPU of changes, and all CPU.
func printPair(out io.Writer, of [2]variant, rounds map[string][]round) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\t\t%s\t\tratio\t\n", of[0].kind, of[1].kind)
	line := func(name string, figure1 func(round) float64) {
		with, without := figures(rounds[of[0].kind], figure1), figures(rounds[of[1].kind], figure1)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.3f\t\n", name, figure(with.median, true), with.span(),
			figure(without.median, true), without.span(), with.median/without.median)
	}
	line("connect warm: CPU s", func(r round) float64 { return r.Warm.CPU })
	line("connect beside a few: CPU s", func(r round) float64 { return r.Beside.CPU })
	line("connect cold: CPU s", func(r round) float64 { return r.Cold.CPU })
	for _, e := range edits() {
		line(fmt.Sprintf("%s: CPU s, %d changes", e.name, changes), func(r round) float64 { return cpuOf(r.Changes[e.name]) })
	}
	all := func(r round) (sum float64) {
		for _, e := range edits() {
			sum += cpuOf(r.Changes[e.name])
		}
		return sum
	}
	line("all changes: CPU s", all)
	line("all: CPU s", func(r round) float64 { return all(r) + r.Warm.CPU + r.Beside.CPU + r.Cold.CPU })
	line("peak memory: MB", func(r round) float64 { return r.Peak })
	line("memory after: MB", func(r round) float64 { return r.After })
	_ = w.Flush()
}

// spread is what several rounds gave.
type spread struct{ least, median, most float64 }

func (s spread) span() string { return fmt.Sprintf("%.3g–%.3g", s.least, s.most) }

func figures(rounds []round, of func(round) float64) spread {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = of(r)
	}
	return spread{slices.Min(all), median(rounds, of), slices.Max(all)}
}
