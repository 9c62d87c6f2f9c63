package main

import (
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func configCommand(p *program) *cobra.Command {
	var a *asked
	var effect bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration of a running control plane: where it came from, what it is good for, and what was refused and why",
		Long: `Show the configuration of a running control plane: where each object came from, what it is good for, and what was refused and why.

An object's state is ok, warned, refused (its last good version is served, if there is one), held (it was taken, but something that was made of it was
not, or most proxies of a namespace refuse it now), refused by so many proxies (which speak for themselves alone, as those in plain text do: others have
it; coxswain proxies --refused says why) or left out (istiod serves its kind, and nobody does here). EFFECT is how many resources were made from it, by itself or
by way of rows that plugins derived from it, and how many proxies are in their views; none: it changes nothing that a connected proxy has. With -o wide
what plugins derived (a VirtualService of an HTTPRoute) has lines of its own. Where a part of the object leads to nothing (a route to a host that is not
there, a selector that selects nobody), EFFECT counts it, and a line below says which, as coxswain analyze --live does. All generators are asked about all
that they have made for that, which takes some seconds in a large mesh; --effect=false leaves it out.`,
		Example: `  coxswain config
  coxswain config -o wide
  coxswain config -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []show.Object
			if err := a.page(c.Context(), "/debug/configs", &list); err != nil {
				return err
			}
			if effect {
				var all admin.Effects
				if err := a.page(c.Context(), "/debug/effects", &all); err != nil {
					fmt.Fprintf(p.err, "coxswain: what objects are good for is not known: %v\n", err)
				} else {
					show.Weigh(list, all)
				}
				if err := noteDeadEnds(c.Context(), list, a.addr); err != nil {
					fmt.Fprintf(p.err, "coxswain: what leads to nothing is not known: %v\n", err)
				}
			}
			return a.print(list, func(w io.Writer, wide bool) {
				shown := list
				if !wide {
					shown = show.Written(list)
				}
				show.Objects(w, shown)
				var pins []admin.Pin
				var stage admin.Rollout
				// What an older control plane does not say is not known, and nothing is said of it.
				_, _ = a.page(c.Context(), "/debug/pins", &pins), a.page(c.Context(), "/debug/rollout", &stage)
				show.HeldBack(w, pins, stage)
				var plugins []admin.Plugin
				_ = a.page(c.Context(), "/debug/plugins", &plugins)
				show.TurnedOff(w, plugins)
				var refused []admin.Refusal
				_ = a.page(c.Context(), "/debug/refusals", &refused)
				show.Apart(w, refused)
			})
		},
	}
	a = askedBy(p, c)
	c.Flags().BoolVar(&effect, "effect", true, "say what was made from each object")
	return c
}
