package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// clearScreen takes the cursor home and empties the terminal (ECMA-48: CUP, ED).
const clearScreen = "\x1b[H\x1b[2J"

// pluginLoad is a line of `plugins top`: sums since the control plane's start, and what happened
// between two readings.
type pluginLoad struct {
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

func pluginTopCommand(p *program) *cobra.Command {
	a, once, interval := &asked{p: p}, false, 2*time.Second
	c := &cobra.Command{
		Use:   "top",
		Short: "Show what the plugins of a running control plane do, live: calls, errors, times, bytes, lag, CPU and memory",
		Long: `Show what the plugins of a running control plane do, again and again until it is interrupted.

CALLS are questions that the plugin has answered since the control plane's start (revisions, proxies, names, patches, callers), of sources their messages with
rows; ERRORS those answers that say that something failed. Times, bytes and CPU are those since the last line: P50 and P99 are estimates from a histogram,
since the start where nothing was asked in between. LAG is for how long the oldest question waits.`,
		Example: `  coxswain plugins top
  coxswain plugins top --once -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if interval < 10*time.Millisecond {
				return usageError{fmt.Errorf("--interval is at least 10ms, not %v", interval)}
			}
			return a.top(c.Context(), once, interval)
		},
	}
	addrFlag(p, c, &a.addr)
	formatFlag(c, &a.format)
	c.Flags().BoolVar(&once, "once", false, "read twice, show it once and end")
	c.Flags().DurationVar(&interval, "interval", interval, "time between readings")
	return c
}

// top shows readings until ctx ends.
func (a *asked) top(ctx context.Context, once bool, interval time.Duration) error {
	before, err := reading(ctx, a.addr)
	at := time.Now()
	if err != nil {
		return orElsewhere(ctx, a.p, err)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now, err := reading(ctx, a.addr)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		list := loadsBetween(before, now, time.Since(at))
		before, at = now, time.Now()
		if err := a.show(list, once, func(w io.Writer, _ bool) { loadTable(w, list) }); err != nil || once {
			return err
		}
	}
}

func reading(ctx context.Context, addr string) (list []admin.Plugin, err error) {
	raw, err := get(ctx, addr, "/debug/plugins")
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	return list, err
}

func loadsBetween(before, now []admin.Plugin, took time.Duration) []pluginLoad {
	was := map[string]admin.Plugin{}
	for _, p := range before {
		was[p.Name] = p
	}
	list := make([]pluginLoad, len(now))
	for i, p := range now {
		list[i] = loadBetween(was[p.Name], p, took)
	}
	return list
}

func loadBetween(before, now admin.Plugin, took time.Duration) pluginLoad {
	perSecond := func(before, now uint64) float64 { return float64(now-min(before, now)) / took.Seconds() }
	l := pluginLoad{
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

// show prints a reading of several, or the only one; in JSON a line for each, in YAML a document.
func (a *asked) show(reading any, once bool, table func(w io.Writer, wide bool)) error {
	switch {
	case a.format == "json":
		return json.NewEncoder(a.p.out).Encode(reading)
	case once:
	case a.format == "yaml":
		fmt.Fprintln(a.p.out, "---")
	default:
		fmt.Fprint(a.p.out, clearScreen)
	}
	return a.print(reading, table)
}

func loadTable(w io.Writer, list []pluginLoad) {
	fmt.Fprintln(w, "NAME\tKIND\tSTATE\tCALLS\tCALLS/S\tERRORS\tP50\tP99\tIN/S\tOUT/S\tLAG\tCPU\tMEMORY")
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t%.1f%%\t%s\n", l.Name, l.Kind, l.State, l.Calls, l.CallsPerSecond, l.Errors,
			brief(l.P50), brief(l.P99), rate(l.BytesIn), rate(l.BytesOut), brief(l.Lag), l.CPUPercent, size(l.Memory))
	}
}

// brief is a time of so many seconds, as short as it can be read.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// rate is bytes a second.
func rate(bytes float64) string {
	switch {
	case bytes < 1:
		return "-"
	case bytes < 1e6:
		return fmt.Sprintf("%.1f kB", bytes/1e3)
	}
	return fmt.Sprintf("%.1f MB", bytes/1e6)
}
