package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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
					printAudit(w, e)
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

func printAudit(w io.Writer, e audit.Entry) {
	fmt.Fprintf(w, "%s %s: %s %s, by %s", e.At.Format("2006-01-02 15:04:05"), e.Plugin, e.What, e.Outcome, e.Who)
	if e.Force {
		fmt.Fprint(w, ", forced")
	}
	fmt.Fprintln(w)
	if e.From != nil || e.To != nil {
		fmt.Fprintf(w, "  %s -> %s\n", programText(e.From), programText(e.To))
	}
	for _, v := range []struct{ title, text string }{{"changed", strings.Join(e.Changed, ", ")}, {"difference", e.Summary}, {"because", strings.Join(e.Reasons, "; ")}} {
		if v.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", v.title, strings.ReplaceAll(v.text, "\n", "\n    "))
		}
	}
}

func programText(p *audit.Program) string {
	switch {
	case p == nil:
		return "nothing"
	case p.SHA256 == "":
		return p.Name
	}
	return p.Name + " (sha256 " + p.SHA256 + ")"
}
