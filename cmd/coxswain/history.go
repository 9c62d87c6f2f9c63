package main

import (
	"io"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func historyCommand(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{
		Use:   "history",
		Short: "List the last revisions: when each was served, what for, what it changed, whom it reached, and whether it is kept",
		Long: `List the last revisions: when each was served, what for, what it changed, whom it reached, and whether it is kept. Those that are kept can be compared
(coxswain diff) and served again (coxswain pin). Revisions of endpoints alone are not listed: what they bring counts as part of the revision before.

The settings historyRevisions and historyBytes bound what is kept; with stateDir it outlives a restart.`,
		Example: `  coxswain history
  coxswain history -o wide
  coxswain history -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var h admin.History
			if err := a.page(c.Context(), "/debug/history", &h); err != nil {
				return err
			}
			return a.print(h, func(w io.Writer, wide bool) { show.History(w, h, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}
