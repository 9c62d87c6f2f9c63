package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

func pluginPlanCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use: "plan FILE", Short: "Show what a plugins.yaml would change, and what the guard would say of it; the exit code is 3 if it would say no",
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var out api.Planned
			if _, _, err := ask(c.Context(), p, at, http.MethodPost, "/plan", api.Plan{Text: string(text)}, &out); err != nil {
				return err
			}
			err = a.print(out, func(w io.Writer, _ bool) {
				for _, change := range out.Changes {
					show.Change(w, change)
				}
				if out.Error == "" && len(out.Changes) == 0 {
					fmt.Fprintln(w, "nothing would change")
				}
			})
			switch {
			case err != nil:
				return err
			case out.Error != "":
				return errors.New(out.Error)
			case slices.ContainsFunc(out.Changes, func(c *swap.Change) bool { return len(c.Guard) > 0 }):
				return heldError{}
			}
			return nil
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}

func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s wants one argument, the FILE", c.CommandPath())}
	}
	return nil
}
