package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"

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
			return a.print(i, func(w io.Writer, wide bool) { impactTable(w, i, wide) })
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

func impactTable(w io.Writer, i admin.Impact, wide bool) {
	if i.Row.Gone {
		fmt.Fprintf(w, "There is no %s.\n", rowText(i.Row.RowName))
	} else {
		fmt.Fprintf(w, "%s, published by plugin %s from %s, as it is since revision %d\n", rowText(i.Row.RowName), i.Row.Plugin, cmp.Or(i.Row.Source, "-"), i.Row.Revision)
	}
	for _, n := range i.Through {
		fmt.Fprintf(w, "by way of %s\n", rowText(n))
	}
	if i.Unknown > 0 {
		fmt.Fprintf(w, "Of %d of %d resources it is not known: %s\n", i.Unknown, i.Asked, i.Why)
	}
	most := mostRows
	if wide {
		most = max(len(i.Resources), len(i.Proxies))
	}
	if len(i.Resources) == 0 {
		fmt.Fprintln(w, "\nNothing that a proxy has or asks for depends on it.")
		return
	}
	fmt.Fprintln(w, "\nTYPE\tRESOURCE\tPLUGIN\tPROXIES")
	for _, r := range i.Resources[:min(most, len(i.Resources))] {
		name := r.Name
		if r.Absent {
			name += " (there is none)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", lastWord(r.Type), name, r.Plugin, r.Proxies)
	}
	more(w, len(i.Resources)-most, false)
	fmt.Fprintf(w, "\nPROXIES (%d)\n", len(i.Proxies))
	for _, n := range i.Proxies[:min(most, len(i.Proxies))] {
		fmt.Fprintln(w, n)
	}
	more(w, len(i.Proxies)-most, false)
}
