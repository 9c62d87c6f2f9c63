package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

const rolloutLong = `Show or end the stage of a push, where some proxies try what people change before all others get it (the settings rolloutFirst and rolloutHold).

A stage begins with a change of configuration that people made: the first proxies are served it, all others what was served before. Endpoints reach
everybody at once. Once all of the first proxies have acknowledged it and rolloutHold has gone by, all are served it. When one of them refuses
something, or the metric that is watched (rolloutMetricQuery) is too high, all are served what was served before, until something is changed, which is
tried next, or somebody promotes it.`

func rolloutCommand(p *program) *cobra.Command {
	c := &cobra.Command{Use: "rollout", Short: "Show or end the stage of a push, where some proxies try what people change first", Long: rolloutLong,
		Example: `  coxswain rollout status
  coxswain rollout promote
  coxswain rollout abort --why 'more errors than before'`}
	c.AddCommand(rolloutStatus(p), rolloutOrder(p, "promote", "Serve all proxies what is live now"),
		rolloutOrder(p, "abort", "Serve all proxies what was served before the stage"))
	return c
}

func rolloutStatus(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{Use: "status", Short: "Show how far the stage is, and what it waits for", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error {
		var is admin.Rollout
		if err := a.page(c.Context(), "/debug/rollout", &is); err != nil {
			return err
		}
		return a.print(is, func(w io.Writer, wide bool) {
			show.Rollout(w, is.Stage)
			if wide {
				show.Staged(w, is.Held)
			}
		})
	}}
	a = askedBy(p, c)
	return c
}

func rolloutOrder(p *program, use, short string) *cobra.Command {
	var at which
	var order api.RolloutOrder
	a := &asked{p: p}
	c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(c *cobra.Command, _ []string) error {
		return a.rollout(c.Context(), at, "/rollout/"+use, order)
	}}
	at.flags(c)
	formatFlag(c, &a.format)
	c.Flags().StringVar(&order.Why, "why", "", "`REASON` that is shown, and kept with who gave the order")
	return c
}

// rollout gives an order, and prints how far the stage is then.
func (a *asked) rollout(ctx context.Context, at which, path string, order api.RolloutOrder) error {
	if err := a.check(); err != nil {
		return err
	}
	var out api.RolloutOutcome
	if _, _, err := ask(ctx, a.p, at, http.MethodPost, path, order, &out); err != nil {
		return err
	}
	if out.Error != "" || out.Status == nil {
		return errors.New(cmp.Or(out.Error, "there is no answer; is it a control plane of this version?"))
	}
	return a.print(out.Status, func(w io.Writer, _ bool) { show.Rollout(w, *out.Status) })
}
