package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/spf13/cobra"
)

func pluginLogCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use: "log [NAME]", Short: "Show who changed plugins, and what came of it: the last 1,000 entries since the start (auditLog keeps them all)",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("%s wants at most one argument, a plugin's NAME", c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			path := "/audit"
			if len(args) == 1 {
				path += "?plugin=" + url.QueryEscape(args[0])
			}
			var kept audit.Kept
			if _, _, err := ask(c.Context(), p, at, http.MethodGet, path, nil, &kept); err != nil {
				return err
			}
			err := a.print(kept, func(w io.Writer, _ bool) {
				for _, e := range kept.Entries {
					show.Audit(w, e)
				}
				if len(kept.Entries) == 0 && kept.Fault == "" {
					fmt.Fprintln(w, "nothing was changed since the start")
				}
			})
			if err == nil && kept.Fault != "" {
				err = errors.New("the audit log lacks entries: " + kept.Fault)
			}
			return err
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}
