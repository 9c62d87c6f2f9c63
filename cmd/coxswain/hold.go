package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

// holdCommand shows and decides what the guard holds.
func holdCommand(p *program) *cobra.Command {
	list := holdListCommand(p)
	c := &cobra.Command{
		Use:   "hold",
		Args:  noArgs,
		RunE:  list.RunE,
		Short: "Show what is held because much would go at once, and decide",
		Long: `Show what is held because much would go at once: rows that a plugin took away or changed so that proxies would lose more than its guard allows. What
was there before stays served. A hold ends by itself when its cause is repaired; apply lets it through; drop forgets it and starts the plugin anew, so
that what it says then is judged anew. Without a command it is hold list.`,
		Example: `  coxswain hold list
  coxswain hold show files
  coxswain hold apply files`,
	}
	c.AddCommand(
		list,
		holdOneCommand(p, "show", "Show what is held of a plugin, and why", http.MethodGet, ""),
		holdOneCommand(p, "apply", "Let through what is held of a plugin", http.MethodPost, "/apply"),
		holdOneCommand(p, "drop", "Forget what is held of a plugin, and start it anew", http.MethodPost, "/drop"),
	)
	c.Flags().AddFlagSet(list.Flags())
	return c
}

func holdListCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use: "list", Short: "Show what is held; the exit code is 3 if anything is", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			all := []control.Held{}
			if _, _, err := ask(c.Context(), p, at, http.MethodGet, "/holds", nil, &all); err != nil {
				return err
			}
			if err := a.print(all, func(w io.Writer, wide bool) { show.Holds(w, all, wide) }); err != nil {
				return err
			}
			if len(all) > 0 {
				return heldError{}
			}
			return nil
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}

func holdOneCommand(p *program, what, short, method, path string) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{Use: what + " PLUGIN", Short: short, Args: oneName, RunE: func(c *cobra.Command, args []string) error {
		if err := a.check(); err != nil {
			return err
		}
		var out api.HoldOutcome
		if _, _, err := ask(c.Context(), p, at, method, "/holds/"+url.PathEscape(args[0])+path, nil, &out); err != nil {
			return err
		}
		if out.Error != "" {
			return errors.New(out.Error)
		}
		return a.print(out.Hold, func(w io.Writer, _ bool) {
			show.Hold(w, out.Hold)
			if what != "show" {
				fmt.Fprintf(w, "  %s\n", map[string]string{"apply": "it goes through now", "drop": "it is forgotten, and the plugin starts anew"}[what])
			}
		})
	}}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}

// heldError is that something is held, or would be: it was said already.
type heldError struct{}

func (heldError) Error() string { return "" }
