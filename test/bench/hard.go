package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// scenario is a load under which sharing is hard, or the wire is.
type scenario struct {
	name string
	own  fleet.Own
	slow float64
	tls  bool
}

func scenarios() []scenario {
	return []scenario{
		{name: "alike"},
		{name: "labels, inbound listeners and tracing tags of their own", own: fleet.Own{Address: true, Labels: true, Tags: true}},
		{name: "TLS", tls: true},
		{name: "30 % read slowly", slow: 0.3},
	}
}

// hardResult is what a server did in a scenario.
type hardResult struct {
	Scenario, Server string
	Cold, Warm       measured
	Changes          map[string]measured
	// Views and what splits them, by type; PSS in MB at its peak.
	Views map[string]string
	Peak  float64
	Lost  int
}

// measured is how long something took for 99 of 100 sidecars, and what it cost the server.
type measured struct {
	P99 time.Duration
	CPU float64
}

const (
	hardSidecars = 500
	hardRepeats  = 10
	patience     = 2 * time.Minute
)

// hard measures all scenarios, Coxswain beside the floor.
func hard(ctx context.Context, c config) error {
	l := load{"W2", 1000, hardSidecars, "sotw"}
	if err := prepare(c); err != nil {
		return err
	}
	if err := dump(ctx, c, l); err != nil {
		return err
	}
	var all []*hardResult
	for _, s := range scenarios() {
		if !strings.Contains(s.name, c.only) {
			continue
		}
		for _, kind := range []string{coxswain, floor} {
			r, err := hardOnce(ctx, c, l, s, kind)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, kind, err)
			}
			all = append(all, r)
		}
	}
	printHard(os.Stdout, all)
	before, after, err := manyChanges(ctx, c)
	if err != nil {
		return err
	}
	fmt.Printf("\nmemory, 100 sidecars: %.0f MB after 200 changes, %.0f MB after 10,000 more (%+.1f %%)\n", before, after, 100*(after/before-1))
	for _, more := range []func(context.Context, config) (string, error){scope, reading} {
		text, err := more(ctx, c)
		if err != nil {
			return err
		}
		fmt.Print("\n", text)
	}
	return save(c.path("hard.json"), all)
}

// hardOnce runs one scenario on one server.
func hardOnce(ctx context.Context, c config, l load, sc scenario, kind string) (*hardResult, error) {
	if err := fill(c, l); err != nil {
		return nil, err
	}
	s, fc, err := startHard(ctx, c, l, sc, kind)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	pid := s.cmd.Process.Pid
	r := &hardResult{Scenario: sc.name, Server: kind, Changes: map[string]measured{}, Views: map[string]string{}}
	connect := func() (*fleet.Fleet, measured, error) {
		before := usage.CPU(pid)
		f, a, err := fleet.Connect(ctx, fc)
		if err != nil {
			return nil, measured{}, err
		}
		f.Rest(settle)
		r.Lost += a.Missing
		return f, measured{a.P99, usage.CPU(pid) - before}, nil
	}
	first, cold, err := connect()
	if err != nil {
		return nil, err
	}
	second, warm, err := connect() // the same sidecars again, while their views are known
	first.Close()
	if err != nil {
		return nil, err
	}
	defer second.Close()
	r.Cold, r.Warm = cold, warm
	for _, e := range edits() {
		if s.touch(e, false) == "" {
			continue
		}
		if err := s.change(second, e, r); err != nil {
			return nil, err
		}
	}
	if kind == coxswain {
		if r.Views, err = viewsOf(s.ctl); err != nil {
			return nil, err
		}
	}
	_, r.Peak = s.memory.Read()
	return r, nil
}

// change makes an edit again and again.
func (s *server) change(f *fleet.Fleet, e edit, r *hardResult) error {
	var times []time.Duration
	var sum float64
	for i := range hardRepeats {
		values := strings.NewReplacer("{marker}", fmt.Sprintf("mk-%06d", i), "{ip}", fmt.Sprintf("10.250.1.%d", 100+i))
		typ, text, _ := strings.Cut(values.Replace(e.expect), ":")
		before := usage.CPU(s.cmd.Process.Pid)
		a, err := f.Change(typ, text, func() error { return shell(values.Replace(s.touch(e, false))) })
		if err != nil {
			return err
		}
		times, r.Lost = append(times, a.P99), r.Lost+a.Missing
		sum += usage.CPU(s.cmd.Process.Pid) - before
	}
	slices.Sort(times)
	r.Changes[e.name] = measured{times[len(times)/2], sum * changes / hardRepeats}
	return nil
}

// viewsOf asks how many views there are of each type, and what they differ in.
func viewsOf(address string) (map[string]string, error) {
	resp, err := http.Get("http://" + address + "/debug/views")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var list []admin.View
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, err
	}
	number, values := map[string]int{}, map[string]map[string]map[string]bool{}
	for _, v := range list {
		number[v.Type]++
		for fact, value := range v.Facts {
			of := values[v.Type]
			if of == nil {
				of = map[string]map[string]bool{}
				values[v.Type] = of
			}
			if of[fact] == nil {
				of[fact] = map[string]bool{}
			}
			of[fact][fmt.Sprint(value)] = true
		}
	}
	out := map[string]string{}
	for typ, n := range number {
		var splits []string
		for _, fact := range slices.Sorted(maps.Keys(values[typ])) {
			if k := len(values[typ][fact]); k > 1 {
				splits = append(splits, fmt.Sprintf("%s %d", fact, k))
			}
		}
		out[typ[strings.LastIndex(typ, ".")+1:]] = fmt.Sprintf("%d (%s)", n, strings.Join(splits, ", "))
	}
	return out, nil
}

func printHard(out io.Writer, all []*hardResult) {
	fmt.Fprintf(out, "W2, %d sidecars, state of the world; p99 in ms, CPU in s (of changes: the sum over %d)\n\n", hardSidecars, changes)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "scenario\tserver\tcold\tCPU\twarm\tCPU\t")
	for _, e := range edits()[:3] {
		fmt.Fprintf(w, "%s\tCPU\t", e.name)
	}
	fmt.Fprint(w, "peak MB\tnot reached\t\n")
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%s%s", r.Scenario, r.Server, r.Cold, r.Warm)
		for _, e := range edits()[:3] {
			fmt.Fprint(w, r.Changes[e.name])
		}
		fmt.Fprintf(w, "%.0f\t%d\t\n", r.Peak, r.Lost)
	}
	_ = w.Flush()
	for _, r := range all {
		for _, typ := range slices.Sorted(maps.Keys(r.Views)) {
			fmt.Fprintf(out, "views, %s, %s: %s\n", r.Scenario, typ, r.Views[typ])
		}
	}
}

func (m measured) String() string {
	return fmt.Sprintf("%d\t%.2f\t", m.P99.Milliseconds(), m.CPU)
}
