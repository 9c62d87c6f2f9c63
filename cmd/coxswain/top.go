package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func topCommand(p *program) *cobra.Command {
	a, once, interval, lines := &asked{p: p}, false, 2*time.Second, 20
	c := &cobra.Command{
		Use:   "top",
		Short: "Show proxies and pushes of a running control plane, live: who is in sync, who refuses, what was pushed last and why",
		Long: `Show proxies and pushes of a running control plane, again and again until it is interrupted.

The first line counts connected proxies, and pushes, responses and bytes a second since the last reading. Below are proxies, those first that refuse
something, then those that have not answered; and the last pushes with what they were for. coxswain plugins top shows plugins.`,
		Example: `  coxswain top
  coxswain top --lines 50 --interval 500ms
  coxswain top --once -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if interval < 10*time.Millisecond {
				return usageError{fmt.Errorf("--interval is at least 10ms, not %v", interval)}
			}
			if lines < 1 {
				return usageError{fmt.Errorf("--lines is at least 1, not %d", lines)}
			}
			return a.overview(c.Context(), once, interval, lines)
		},
	}
	addrFlag(p, c, &a.addr)
	formatFlag(c, &a.format)
	c.Flags().BoolVar(&once, "once", false, "read and show it once and end")
	c.Flags().DurationVar(&interval, "interval", interval, "time between readings")
	c.Flags().IntVar(&lines, "lines", lines, "proxies that are shown at most")
	return c
}

// overview shows readings until ctx ends.
func (a *asked) overview(ctx context.Context, once bool, interval time.Duration, lines int) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var after uint64
	var before time.Time
	for {
		var proxies []admin.ProxyStatus
		var pushes []admin.Push
		err := a.page(ctx, "/debug/ledger", &proxies)
		if err == nil {
			err = a.page(ctx, "/debug/pushes", &pushes)
		}
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		o := show.OverviewOf(proxies, pushes, lines)
		if !before.IsZero() {
			o.Rates = show.RatesOf(pushes, after, now.Sub(before))
		}
		after, before = o.Revision, now
		if err := a.show(o, once, func(w io.Writer, wide bool) { show.Mesh(w, o, wide) }); err != nil || once {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
