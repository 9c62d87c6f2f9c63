package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/spf13/cobra"
)

func proxiesCommand(p *program) *cobra.Command {
	var a *asked
	var pending, refused bool
	c := &cobra.Command{
		Use:   "proxies",
		Short: "List the connected proxies, or those resources that they have not answered or refused",
		Long: `List the connected proxies, or those resources that they have not answered (--pending) or refused (--refused).

With --refused the resources that proxies refuse come first, with what became of them. A proxy that refuses a part of one (a virtual host, a filter
chain, a filter, a cluster) has the rest. Where most identities of a namespace refuse a part, the namespace's other proxies that have not accepted it
have it as most had it before, until it changes, unless it decides who may do what. Proxies without a verified identity speak for themselves alone.`,
		Example: `  coxswain proxies
  coxswain proxies --refused
  coxswain proxies --pending -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.proxies(c.Context(), pending, refused) },
	}
	a = askedBy(p, c)
	c.Flags().BoolVar(&pending, "pending", false, "resources that were sent and not answered, or are to be sent still")
	c.Flags().BoolVar(&refused, "refused", false, "resources that were refused, and why")
	return c
}

// proxyList is what proxies prints.
type proxyList struct {
	Refused []admin.Refusal     `json:"refused,omitempty"`
	Proxies []admin.ProxyStatus `json:"proxies,omitempty"`
	Ledger  []xds.StreamLedger  `json:"resources,omitempty"`
}

func (a *asked) proxies(ctx context.Context, pending, refused bool) error {
	var out proxyList
	if err := a.page(ctx, "/debug/ledger", &out.Proxies); err != nil {
		return err
	}
	if !pending && !refused {
		return a.print(out.Proxies, func(w io.Writer, _ bool) {
			fmt.Fprintln(w, "NAME\tNODE\tREMOTE\tPROTOCOL\tAGE")
			for _, p := range out.Proxies {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", show.ShortName(p.Node), p.Node, p.Remote, p.Protocol, show.Age(p.Since))
			}
		})
	}
	if refused {
		if err := a.page(ctx, "/debug/refusals", &out.Refused); err != nil {
			return err
		}
	}
	shows := func(r xds.ResourceStatus) bool {
		switch r.State {
		case xds.Pending, xds.Queued:
			return pending
		case xds.Refused, xds.Trying:
			return refused
		}
		return false
	}
	asked := map[string]bool{}
	for _, p := range out.Proxies {
		concerns := slices.ContainsFunc(p.Types, func(t admin.ProxyTypeStatus) bool {
			return pending && (t.State == "pending" || t.State == "not sent" || t.Waiting) || refused && t.Refused != ""
		})
		if !concerns || asked[p.Node] {
			continue
		}
		asked[p.Node] = true
		var all []xds.StreamLedger
		if err := a.page(ctx, "/debug/ledger?proxyID="+url.QueryEscape(p.Node), &all); err != nil {
			continue // it has left
		}
		out.Ledger = append(out.Ledger, shown(all, shows)...)
	}
	out.Proxies = nil
	return a.print(out, func(w io.Writer, _ bool) {
		for _, r := range out.Refused {
			fmt.Fprintln(w, show.Refusal(r))
		}
		show.Ledger(w, out.Ledger, shows)
	})
}

// shown are streams with some of their resources alone.
func shown(all []xds.StreamLedger, shows func(xds.ResourceStatus) bool) []xds.StreamLedger {
	for i := range all {
		for j := range all[i].Types {
			all[i].Types[j].Resources = slices.DeleteFunc(all[i].Types[j].Resources, func(r xds.ResourceStatus) bool { return !shows(r) })
		}
		all[i].Types = slices.DeleteFunc(all[i].Types, func(t xds.TypeLedger) bool { return len(t.Resources) == 0 })
	}
	return slices.DeleteFunc(all, func(s xds.StreamLedger) bool { return len(s.Types) == 0 })
}
