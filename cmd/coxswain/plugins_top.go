package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// clearScreen takes the cursor home and empties the terminal (ECMA-48: CUP, ED).
const clearScreen = "\x1b[H\x1b[2J"

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
		list := show.LoadsBetween(before, now, time.Since(at))
		before, at = now, time.Now()
		if err := a.show(list, once, func(w io.Writer, _ bool) { show.Loads(w, list) }); err != nil || once {
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

// show prints a reading of several, or the only one; in JSON a line for each, in YAML a document.
func (a *asked) show(reading any, once bool, table func(w io.Writer, wide bool)) error {
	switch {
	case a.format == "json":
		return json.NewEncoder(a.p.out).Encode(reading)
	case once:
	case a.format == "yaml":
		fmt.Fprintln(a.p.out, "---")
	case a.p.onScreen():
		fmt.Fprint(a.p.out, clearScreen)
	case a.shown:
		fmt.Fprintln(a.p.out)
	}
	a.shown = true
	return a.print(reading, table)
}

// onScreen reports whether what is printed appears on a terminal that can be cleared.
func (p *program) onScreen() bool {
	f, ok := p.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && p.variable("TERM") != "dumb"
}
