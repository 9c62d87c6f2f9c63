package main

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/spf13/cobra"
)

func proxyStatusCommand(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{
		Use:     "proxy-status [PROXY]",
		Aliases: []string{"ps"},
		Short:   "Say how far each connected proxy is: what it has acknowledged of each type, since when, and what it refused",
		Long: `Say how far each connected proxy is: for each type SYNCED (it has acknowledged all that it was sent), STALE (it has not answered yet), ERROR (it has
refused something), HELD (what it refused is held at what was accepted before, for its whole view) or NOT SENT, and since when; and the revision that it is pinned to (coxswain pin), or
that it stays with while others try what came after it: (rollout) (coxswain rollout).

With PROXY, a node's ID or NAME.NAMESPACE as it stands there, each resource is listed with its version.`,
		Example: `  coxswain proxy-status
  coxswain proxy-status web-7d9.shop
  coxswain ps -o wide`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("coxswain proxy-status wants one PROXY at most")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.ledger(c.Context(), args[0])
			}
			var list []admin.ProxyStatus
			if err := a.page(c.Context(), "/debug/ledger", &list); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer, wide bool) { show.Proxies(w, list, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}

func (a *asked) ledger(ctx context.Context, name string) error {
	if err := a.check(); err != nil {
		return err
	}
	node, err := connected(ctx, a.addr, name)
	if err != nil {
		return orElsewhere(ctx, a.p, err)
	}
	var all []xds.StreamLedger
	if err := a.page(ctx, "/debug/ledger?proxyID="+url.QueryEscape(node), &all); err != nil {
		return err
	}
	return a.print(all, func(w io.Writer, _ bool) { show.Ledger(w, all, func(xds.ResourceStatus) bool { return true }) })
}
