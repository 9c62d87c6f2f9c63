package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Plugins writes a line for each plugin, and below what is wrong with it.
func Plugins(w io.Writer, list []admin.Plugin) {
	fmt.Fprintln(w, "NAME\tKIND\tCARRIER\tSTATE\tVERSION\tROWS\tREVISION\tSAID\tRESTARTS\tMEMORY")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%s\n",
			p.Name, p.Kind, p.Carrier, stateOf(p), cmp.Or(p.Version, "-"), p.Rows, p.Revision, Age(p.LastSign), p.Restarts, Size(p.Memory))
	}
	for _, p := range list {
		if p.Off != "" {
			fmt.Fprintf(w, "\n%s does not run: %s\n", p.Name, p.Off)
		}
		if p.LastError != "" {
			fmt.Fprintf(w, "\n%s failed last: %s\n", p.Name, strings.ReplaceAll(strings.TrimSpace(p.LastError), "\t", " "))
		}
		if p.LastChange != "" {
			fmt.Fprintf(w, "\n%s changed last: %s; coxswain plugins show %s\n", p.Name, strings.ReplaceAll(p.LastChange, "\t", " "), p.Name)
		}
		if p.Away != nil {
			fmt.Fprintf(w, "\n%s: %s\n", p.Name, strings.ReplaceAll(awayOf(p.Away), "\t", " "))
		}
		for _, row := range p.Withheld {
			fmt.Fprintf(w, "\n%s died over this row and gets it as it was before: %s\n", p.Name, row)
		}
		if h := p.Held; h != nil {
			fmt.Fprintf(w, "\n%s is held since %s: %s; coxswain hold show %s\n", p.Name, h.Since.Format("2006-01-02 15:04:05"), FirstOf(h.Reasons), p.Name)
		}
		for _, fault := range p.Faults {
			if fault.Skipped {
				fmt.Fprintf(w, "\n%s could not do this, and is left out there (onFailure: skip): %s\n", p.Name,
					strings.ReplaceAll(fault.What+": "+fault.Reason, "\t", " "))
				continue
			}
			fmt.Fprintf(w, "\n%s could not do this, its last good result stays: %s\n", p.Name, strings.ReplaceAll(fault.What+": "+fault.Reason, "\t", " "))
		}
	}
}

// stateOf is a plugin's state and for how long what it said last has been out of date.
func stateOf(p admin.Plugin) string {
	if !p.Stale {
		return p.State
	}
	return fmt.Sprintf("%s (stale for %s: %s)", p.State, Age(p.StaleSince), cmp.Or(p.StaleWhy, "away"))
}

// awayOf says since when a source is away, and what becomes of its rows.
func awayOf(a *admin.Away) string {
	const layout = "2006-01-02 15:04:05"
	rows := "its rows stay served"
	switch {
	case a.Dropped:
		rows = "its rows went at " + a.Drops.Format(layout) + ", and come back with it"
	case !a.Drops.IsZero():
		rows = "its rows go at " + a.Drops.Format(layout)
	}
	return fmt.Sprintf("its source is away since %s: %s; %s (onLoss)", a.Since.Format(layout), a.Why, rows)
}

// Load is a line of `plugins top`: sums since the control plane's start, and what happened
// between two readings.
type Load struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	// Calls and errors since the start; CallsPerSecond, BytesIn and BytesOut, a second, between the
	// readings.
	Calls          uint64  `json:"calls"`
	Errors         uint64  `json:"errors"`
	CallsPerSecond float64 `json:"callsPerSecond"`
	// P50 and P99 of the answers between the readings or, if there was none, since the start, in
	// seconds.
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	BytesIn  float64 `json:"bytesInPerSecond"`
	BytesOut float64 `json:"bytesOutPerSecond"`
	// Lag is for how long its oldest question waits, in seconds.
	Lag        float64 `json:"lag"`
	CPUPercent float64 `json:"cpuPercent"`
	Memory     uint64  `json:"memory"`
}

// LoadsBetween returns what plugins did between two readings, which lie took apart.
func LoadsBetween(before, now []admin.Plugin, took time.Duration) []Load {
	was := map[string]admin.Plugin{}
	for _, p := range before {
		was[p.Name] = p
	}
	list := make([]Load, len(now))
	for i, p := range now {
		list[i] = loadBetween(was[p.Name], p, took)
	}
	return list
}

// loadBetween is that of one plugin; before is the zero value for one that was not there.
func loadBetween(before, now admin.Plugin, took time.Duration) Load {
	perSecond := func(before, now uint64) float64 { return float64(now-min(before, now)) / took.Seconds() }
	l := Load{
		Name: now.Name, Kind: now.Kind, State: now.State, Calls: now.Load.Calls, Errors: now.Load.Errors, Lag: now.Load.Lag, Memory: now.Memory,
		CallsPerSecond: perSecond(before.Load.Calls, now.Load.Calls),
		BytesIn:        perSecond(before.Load.BytesIn, now.Load.BytesIn), BytesOut: perSecond(before.Load.BytesOut, now.Load.BytesOut),
	}
	if before.PID == now.PID {
		l.CPUPercent = 100 * max(0, now.Load.CPUSeconds-before.Load.CPUSeconds) / took.Seconds()
	}
	times := now.Load.Times.Since(before.Load.Times)
	if times.Count() == 0 {
		times = now.Load.Times
	}
	l.P50, l.P99 = times.Quantile(.5).Seconds(), times.Quantile(.99).Seconds()
	return l
}

// Loads writes what plugins do, a line for each.
func Loads(w io.Writer, list []Load) {
	fmt.Fprintln(w, "NAME\tKIND\tSTATE\tCALLS\tCALLS/S\tERRORS\tP50\tP99\tIN/S\tOUT/S\tLAG\tCPU\tMEMORY")
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t%.1f%%\t%s\n", l.Name, l.Kind, l.State, l.Calls, l.CallsPerSecond, l.Errors,
			brief(l.P50), brief(l.P99), rate(l.BytesIn), rate(l.BytesOut), brief(l.Lag), l.CPUPercent, Size(l.Memory))
	}
}
