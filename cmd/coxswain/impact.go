package main

import (
	"errors"
	"io"
	"net/url"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func impactCommand(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{
		Use:   "impact KIND/NAMESPACE/NAME",
		Short: "Say what depends on a row: the resources that were made from it, and the proxies that have them",
		Long: `Say what depends on a row: the resources that were made from it, or from rows that plugins derived from it, and the proxies that have them.

KIND is that of a resource, such as VirtualService, or a table, such as services (coxswain config lists resources). Of a row that is not there it is
said which resources it was looked for. All generators are asked for all that they have made; that takes some seconds in a large mesh, and no more
of the time of pushes than that.`,
		Example: `  coxswain impact VirtualService/shop/reviews
  coxswain impact services/shop/reviews.shop.svc.cluster.local -o json`,
		Args: exactly(1, "coxswain impact wants KIND/NAMESPACE/NAME, such as: coxswain impact VirtualService/default/reviews"),
		RunE: func(c *cobra.Command, args []string) error {
			var i admin.Impact
			if err := a.page(c.Context(), "/debug/impact?row="+url.QueryEscape(args[0]), &i); err != nil {
				return err
			}
			return a.print(i, func(w io.Writer, wide bool) { show.Impact(w, i, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}

// exactly wants a number of arguments.
func exactly(n int, otherwise string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{errors.New(otherwise)}
		}
		return nil
	}
}
