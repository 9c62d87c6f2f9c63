package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
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
			return a.print(d.Detail, func(w io.Writer, _ bool) { show.Detail(w, &d.Detail) })
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}
