package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

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
	Ledger  []streamLedger      `json:"resources,omitempty"`
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
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", shortName(p.Node), p.Node, p.Remote, p.Protocol, age(p.Since))
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
		var all []streamLedger
		if err := a.page(ctx, "/debug/ledger?proxyID="+url.QueryEscape(p.Node), &all); err != nil {
			continue // it has left
		}
		out.Ledger = append(out.Ledger, shown(all, shows)...)
	}
	out.Proxies = nil
	return a.print(out, func(w io.Writer, _ bool) {
		for _, r := range out.Refused {
			fmt.Fprintln(w, refusalText(r))
		}
		ledgerTable(w, out.Ledger, shows)
	})
}

// shown are streams with some of their resources alone.
func shown(all []streamLedger, shows func(xds.ResourceStatus) bool) []streamLedger {
	for i := range all {
		for j := range all[i].Types {
			all[i].Types[j].Resources = slices.DeleteFunc(all[i].Types[j].Resources, func(r xds.ResourceStatus) bool { return !shows(r) })
		}
		all[i].Types = slices.DeleteFunc(all[i].Types, func(t xds.TypeLedger) bool { return len(t.Resources) == 0 })
	}
	return slices.DeleteFunc(all, func(s streamLedger) bool { return len(s.Types) == 0 })
}

// refusalText says of a resource that it is refused, by whom, why, and what becomes of it.
func refusalText(r admin.Refusal) string {
	what := fmt.Sprintf("%s %s (view %s)", lastWord(r.Type), r.Name, cmp.Or(r.View.Label, fmt.Sprint(r.View.ID)))
	text := fmt.Sprintf("%s is held for %s, as proxies refused it that are gone: %s\n", what, age(r.Since), r.Reason)
	if r.Refusing > 0 {
		text = fmt.Sprintf("%s is refused for %s by %d of %s, such as %s: %s\n", what, age(r.Since), r.Refusing, many(max(r.Refusing, r.View.Connections), "proxy"), strings.Join(r.Proxies, ", "), r.Reason)
	}
	if len(r.Pieces) > 0 {
		text += "    what they refuse of it: " + strings.Join(r.Pieces, ", ") + "\n"
	}
	votes := ""
	if r.Votes > 0 {
		votes = fmt.Sprintf(" (%d of %s refuse it)", r.Votes, many(max(r.Votes, r.Voters), "identity"))
	}
	switch {
	case r.Held:
		text += fmt.Sprintf("    held: proxies of namespace %s that have not accepted it have that as it was before%s\n", strings.Join(r.Namespaces, ", "), votes)
	case r.Votes == 0:
		text += "    those proxies have the rest; what they say counts for themselves alone\n"
	default:
		text += "    those proxies have the rest, and of that what they accepted before" + votes + "\n"
	}
	for _, n := range r.Rows {
		text += "    made from " + rowText(n) + "\n"
	}
	return text
}
