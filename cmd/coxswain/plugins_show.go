package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

func pluginShowCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a plugin, its last changes, and what proxies refused of them", Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			var d struct {
				api.Detail
				Error string `json:"error"`
			}
			if _, _, err := ask(c.Context(), p, at, http.MethodGet, "/plugins/"+url.PathEscape(args[0]), nil, &d); err != nil {
				return err
			}
			if d.Error != "" {
				return errors.New(d.Error)
			}
			return a.print(d.Detail, func(w io.Writer, _ bool) { printDetail(w, &d.Detail) })
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}

func printDetail(w io.Writer, d *api.Detail) {
	fmt.Fprintf(w, "%s: %s, %s, %s since %s\n", d.Name, d.Kind, d.Carrier, d.State, d.Since.Format("2006-01-02 15:04:05"))
	fmt.Fprintf(w, "  declared at %s\n", d.At)
	if d.PID > 0 {
		fmt.Fprintf(w, "  %s %s, process %d, %s, %d rows, revision %d, %d restarts\n", d.Plugin.Plugin, d.Version, d.PID, size(d.Memory), d.Rows, d.Revision, d.Restarts)
	}
	for _, v := range []struct{ title, text string }{
		{"artifact", d.Artifact}, {"signed by", d.Signed},
		{"runs as", d.User}, {"may not", strings.Join(d.Sandbox, "\n")}, {"others can change it", strings.Join(d.Exposed, "\n")}, {"not taken from it", strings.Join(d.Lacking, "\n")},
		{"failed last", d.LastError}, {"plugins.yaml is not followed", d.FileFault}, {"the program has changed", d.Outdated},
	} {
		if v.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", v.title, strings.ReplaceAll(strings.TrimSpace(v.text), "\n", "\n    "))
		}
	}
	printRows(w, d)
	for i := len(d.Changes) - 1; i >= 0; i-- {
		fmt.Fprintf(w, "\n%s ", d.Changes[i].At.Format("2006-01-02 15:04:05"))
		printChange(w, d.Changes[i])
	}
}
