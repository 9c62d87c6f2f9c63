package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

// Exit codes of wait.
const (
	exitRefused = 3
	exitTimeout = 4
)

func waitCommand(p *program) *cobra.Command {
	var a *asked
	var state string
	var after uint64
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait KIND/NAMESPACE/NAME",
		Short: "Wait until a row has reached the proxies that it concerns, and they have acknowledged it",
		Long: `Wait until a row has reached the proxies that it concerns, and they have acknowledged all that was made of it (--for acked), until it is served
(--for served), or until it is gone and proxies have acknowledged that (--for gone).

Where the row was there before, say with --after which revision it is to be newer than: what coxswain impact, or coxswain wait, printed of it before
the edit. Otherwise a version that is on its way still is not waited for.

Exit codes: 0 it has; 1 the control plane can't be asked; 2 the command line is wrong; 3 a proxy refuses what was made of it; 4 it has not, in time.`,
		Example: `  coxswain wait VirtualService/shop/reviews --for acked --timeout 30s
  kubectl apply -f reviews.yaml && coxswain wait VirtualService/shop/reviews --after 17`,
		Args: exactly(1, "coxswain wait wants KIND/NAMESPACE/NAME, such as: coxswain wait VirtualService/default/reviews --for acked"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains([]string{"acked", "served", "gone"}, state) {
				return usageError{fmt.Errorf("--for is acked, served or gone, not %q", state)}
			}
			return a.wait(c.Context(), args[0], state, after, timeout)
		},
	}
	a = askedBy(p, c)
	c.Flags().StringVar(&state, "for", "acked", "acked, served or gone")
	c.Flags().Uint64Var(&after, "after", 0, "the row is to be newer than this revision")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	return c
}

// waitEvery is how often is asked.
const waitEvery = 200 * time.Millisecond

func (a *asked) wait(ctx context.Context, row, state string, after uint64, timeout time.Duration) error {
	timer, every := time.NewTimer(timeout), time.NewTicker(waitEvery)
	defer timer.Stop()
	defer every.Stop()
	for {
		var at admin.Progress
		if err := a.page(ctx, "/debug/progress?row="+url.QueryEscape(row), &at); err != nil {
			return err
		}
		missing, refused := lacking(at, state, after)
		switch {
		case refused != nil:
			return exitError{exitRefused, fmt.Errorf("%s is refused: %s", show.RowText(at.Row.RowName), strings.TrimSpace(show.Refusal(*refused)))}
		case missing == "":
			return a.print(at, func(w io.Writer, _ bool) {
				fmt.Fprintf(w, "%s of revision %d: %s, %s connected\n", show.RowText(at.Row.RowName), at.Row.Revision, state, show.Are(at.Proxies, "proxy"))
			})
		}
		select {
		case <-timer.C:
			return exitError{exitTimeout, fmt.Errorf("%s: after %s %s", show.RowText(at.Row.RowName), timeout, missing)}
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// lacking says what a row's progress lacks for a state; nothing: it is there.
func lacking(at admin.Progress, state string, after uint64) (missing string, refused *admin.Refusal) {
	switch {
	case state == "gone" && !at.Row.Gone:
		return "it is still there", nil
	case state != "gone" && at.Row.Gone:
		return "there is no such row", nil
	case state != "gone" && at.Row.Revision <= after:
		return fmt.Sprintf("it is still of revision %d", at.Row.Revision), nil
	case at.Row.Revision > at.Served:
		return "it is not served yet", nil
	case state == "served":
		return "", nil
	case len(at.Refused) > 0:
		return "", &at.Refused[0]
	case len(at.Waiting) > 0:
		return fmt.Sprintf("%s yet to acknowledge it, such as %s", show.Are(len(at.Waiting), "proxy"), at.Waiting[0]), nil
	}
	return "", nil
}
