package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one line of a load's table: a figure per server.
type row struct {
	name string
	of   func([]round) (float64, bool)
}

func rows() []row {
	all := []row{
		{"connect warm: p99 ms", each(func(r round) float64 { return r.Warm.Time.P99 })},
		{"connect warm: CPU s", each(func(r round) float64 { return r.Warm.CPU })},
		{"connect beside a few: p99 ms", each(func(r round) float64 { return r.Beside.Time.P99 })},
		{"connect beside a few: CPU s", each(func(r round) float64 { return r.Beside.CPU })},
		{"connect cold: p99 ms", each(func(r round) float64 { return r.Cold.Time.P99 })},
		{"connect cold: CPU s", each(func(r round) float64 { return r.Cold.CPU })},
		{"peak memory: MB", each(func(r round) float64 { return r.Peak })},
		{"memory after: MB", each(func(r round) float64 { return r.After })},
	}
	for _, e := range edits() {
		all = append(all,
			row{e.name + ": p99 ms", change(e.name, func(ps []phase) float64 { return median(ps, func(p phase) float64 { return p.Time.P99 }) })},
			row{e.name + fmt.Sprintf(": CPU s, %d changes", changes), change(e.name, cpuOf)},
			row{e.name + ": MB sent", change(e.name, func(ps []phase) float64 { return median(ps, sent) })},
		)
	}
	return append(all, row{"not reached", total(lost)})
}

// cpuOf adds up the CPU of all changes, as if there had been as many as planned.
func cpuOf(ps []phase) float64 {
	var sum float64
	for _, p := range ps {
		sum += p.CPU
	}
	return sum * changes / float64(len(ps))
}

func sent(p phase) float64 {
	var n int64
	for _, b := range p.Bytes {
		n += b
	}
	return float64(n) / 1e6
}

func lost(r round) (n int64) {
	for _, ps := range r.Changes {
		for _, p := range ps {
			n += p.Lost
		}
	}
	return n
}

func each(of func(round) float64) func([]round) (float64, bool) {
	return func(rs []round) (float64, bool) { return median(rs, of), len(rs) > 0 }
}

func total(of func(round) int64) func([]round) (float64, bool) {
	return func(rs []round) (float64, bool) {
		var n int64
		for _, r := range rs {
			n += of(r)
		}
		return float64(n), len(rs) > 0
	}
}

// change takes the changes of one kind of all rounds together.
func change(name string, of func([]phase) float64) func([]round) (float64, bool) {
	return func(rs []round) (float64, bool) {
		var all []phase
		for _, r := range rs {
			all = append(all, r.Changes[name]...)
		}
		if len(all) == 0 {
			return 0, false
		}
		return of(all), true
	}
}

func median[T any](all []T, of func(T) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	v := make([]float64, len(all))
	for i, x := range all {
		v[i] = of(x)
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func printHead(out io.Writer, r *report) {
	fmt.Fprintf(out, "%s, commit %s: medians of %d rounds, %d changes of a kind in each\n", r.Taken.Format("2006-01-02 15:04"), r.Commit, r.Rounds, r.Repeats)
}

// printLoad writes a load's table, with ratios to the floor.
func printLoad(out io.Writer, l loadReport) {
	fmt.Fprintf(out, "\n%s\n", l.Name)
	fmt.Fprintf(out, "KB per sidecar: %s; istiod: %s\n", kb(l.Bytes), kb(l.Istiod))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\t%s\t%s\t%s / floor\t%s / floor\t\n", coxswain, peer, floor, coxswain, peer)
	for _, row := range rows() {
		ours, ok := row.of(l.Rounds[coxswain])
		theirs, hasPeer := row.of(l.Rounds[peer])
		least, hasFloor := row.of(l.Rounds[floor])
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", row.name, figure(ours, ok), figure(theirs, hasPeer), figure(least, hasFloor),
			ratio(ours, least, ok && hasFloor), ratio(theirs, least, hasPeer && hasFloor))
	}
	_ = w.Flush()
	if rounds := l.Rounds[coxswain]; len(rounds) > 0 {
		fmt.Fprintf(out, "peak memory, in the last round: %s\n", shares(rounds[len(rounds)-1].Processes))
	}
}

// shares are sizes in MB by name, the largest first.
func shares(of map[string]float64) string {
	var out []string
	for _, name := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[b], of[a]) }) {
		out = append(out, fmt.Sprintf("%s %.0f", name, of[name]))
	}
	return strings.Join(out, ", ")
}

func kb(sizes map[string]int64) string {
	var parts []string
	for _, t := range []string{"cds", "eds", "lds", "rds"} {
		if n, ok := sizes[t]; ok {
			parts = append(parts, fmt.Sprintf("%s %.0f", strings.ToUpper(t), float64(n)/1e3))
		}
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

func figure(v float64, ok bool) string {
	switch {
	case !ok:
		return "-"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func ratio(v, to float64, ok bool) string {
	if !ok || to == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v/to)
}
