package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/spf13/cobra"
)

type (
	typeOfProxy   = report.ProxyType
	streamLedger  = xds.StreamLedger
	resourceState struct{ xds.ResourceStatus }
)

// String says what became of a resource at a proxy.
func (s *resourceState) String() string {
	if s == nil {
		return "changed meanwhile"
	}
	text := string(s.State)
	if s.State == xds.Acked {
		text = "acknowledged"
	}
	if !s.Since.IsZero() {
		text += " " + age(s.Since) + " ago"
	}
	if s.Revision > 0 {
		text += fmt.Sprintf(", for revision %d", s.Revision)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
		if s.Has != "" {
			text += "; it has version " + s.Has + " instead"
		}
	}
	return text
}

// stateIn finds a resource in what became of a node's; nil: it is not there.
func stateIn(all []streamLedger, connection uint64, typeURL, name string) *resourceState {
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if st.Connection == connection && t.Type == typeURL && r.Name == name {
					return &resourceState{r}
				}
			}
		}
	}
	return nil
}

// statusTypes are the types that proxy-status has columns for.
var statusTypes = []string{"cds", "lds", "eds", "rds", "ecds", "sds"}

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
			return a.print(list, func(w io.Writer, wide bool) { proxyStatusTable(w, list, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}

// shortName is NAME.NAMESPACE where a node's ID has that, else the ID.
func shortName(node string) string {
	if id, ok := istio.ParseNodeID(node); ok {
		return id.Short()
	}
	return node
}

func proxyStatusTable(w io.Writer, list []admin.ProxyStatus, wide bool) {
	fmt.Fprintf(w, "NAME\tCLUSTER\t%s\tAGE\tVERSION\tPINNED", strings.ToUpper(strings.Join(statusTypes, "\t")))
	if wide {
		fmt.Fprint(w, "\tREMOTE\tPROTOCOL\tVIEWS\tNODE")
	}
	fmt.Fprintln(w)
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s", shortName(p.Node), metadata(p, "CLUSTER_ID"))
		var views []string
		for _, short := range statusTypes {
			i := slices.IndexFunc(p.Types, func(t admin.ProxyTypeStatus) bool { return isType(t.Type, short) })
			if i < 0 {
				fmt.Fprint(w, "\t-")
				continue
			}
			fmt.Fprint(w, "\t", stateWord(p.Types[i]))
			views = append(views, fmt.Sprintf("%s=%s", short, cmp.Or(p.Types[i].View.Label, "-")))
		}
		fmt.Fprintf(w, "\t%s\t%s\t%s", age(p.Since), metadata(p, "ISTIO_VERSION"), pinnedWord(p))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s\t%s\t%s", p.Remote, p.Protocol, cmp.Or(strings.Join(views, " "), "-"), p.Node)
		}
		fmt.Fprintln(w)
	}
	for _, p := range list {
		for _, t := range p.Types {
			if t.Refused != "" {
				fmt.Fprintf(w, "\n%s refused %s: %s\n", shortName(p.Node), lastWord(t.Type), t.Refused)
			}
		}
	}
}

// pinnedWord is the revision that a proxy is pinned to, by hand or by the stage of a push.
func pinnedWord(p admin.ProxyStatus) string {
	if p.Pinned == 0 {
		return "-"
	}
	word := strconv.FormatUint(p.Pinned, 10)
	if p.Staged {
		word += " (rollout)"
	}
	return word
}

func metadata(p admin.ProxyStatus, key string) string {
	if v, ok := p.Metadata[key].(string); ok && v != "" {
		return v
	}
	return "-"
}

// stateWord is a type's state in the word that istioctl's users know, and since when.
func stateWord(t admin.ProxyTypeStatus) string {
	word := map[string]string{"synced": "SYNCED", "pending": "STALE", "refused": "ERROR", "held": "HELD", "not sent": "NOT SENT"}[t.State]
	if t.At.IsZero() {
		return word
	}
	return word + " (" + age(t.At) + ")"
}

func (a *asked) ledger(ctx context.Context, name string) error {
	if err := a.check(); err != nil {
		return err
	}
	node, err := connected(ctx, a.addr, name)
	if err != nil {
		return a.p.elsewhere(ctx, err)
	}
	var all []streamLedger
	if err := a.page(ctx, "/debug/ledger?proxyID="+url.QueryEscape(node), &all); err != nil {
		return err
	}
	return a.print(all, func(w io.Writer, _ bool) { ledgerTable(w, all, func(xds.ResourceStatus) bool { return true }) })
}

func ledgerTable(w io.Writer, all []streamLedger, shows func(xds.ResourceStatus) bool) {
	fmt.Fprintln(w, "PROXY\tTYPE\tRESOURCE\tVERSION\tSTATE\tFOR\tREVISION\tREASON")
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if shows(r) {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", shortName(st.Node), lastWord(t.Type), r.Name, r.Version, r.State, age(r.Since), r.Revision, cmp.Or(r.Reason, "-"))
				}
			}
		}
	}
}

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
	text := fmt.Sprintf("%s %s (view %s) is refused for %s by %d of %d proxies, such as %s: %s\n", lastWord(r.Type), r.Name, cmp.Or(r.View.Label, fmt.Sprint(r.View.ID)),
		age(r.Since), r.Refusing, r.View.Connections, strings.Join(r.Proxies, ", "), r.Reason)
	if len(r.Proxies) == 0 {
		text = fmt.Sprintf("%s %s (view %s) was refused %s ago by proxies that are gone: %s\n", lastWord(r.Type), r.Name, cmp.Or(r.View.Label, fmt.Sprint(r.View.ID)), age(r.Since), r.Reason)
	}
	if len(r.Pieces) > 0 {
		text += "    what they refuse of it: " + strings.Join(r.Pieces, ", ") + "\n"
	}
	switch {
	case r.Held:
		text += fmt.Sprintf("    held: proxies of namespace %s that have not accepted it have that as it was before (%d of %d identities refuse it)\n", strings.Join(r.Namespaces, ", "), r.Votes, r.Voters)
	case r.Votes == 0:
		text += "    those proxies have the rest; what they say counts for themselves alone\n"
	default:
		text += fmt.Sprintf("    those proxies have the rest, and of that what they accepted before (%d of %d identities refuse it)\n", r.Votes, r.Voters)
	}
	for _, n := range r.Rows {
		text += "    made from " + rowText(n) + "\n"
	}
	return text
}

// Exit codes of wait.
const (
	exitRefused = 3
	exitTimeout = 4
)

func waitCommand(p *program) *cobra.Command {
	var a *asked
	var state string
	var after uint64
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait KIND/NAMESPACE/NAME",
		Short: "Wait until a row has reached the proxies that it concerns, and they have acknowledged it",
		Long: `Wait until a row has reached the proxies that it concerns, and they have acknowledged all that was made of it (--for acked), until it is served
(--for served), or until it is gone and proxies have acknowledged that (--for gone).

Where the row was there before, say with --after which revision it is to be newer than: what coxswain impact, or coxswain wait, printed of it before
the edit. Otherwise a version that is on its way still is not waited for.

Exit codes: 0 it has; 1 the control plane can't be asked; 2 the command line is wrong; 3 a proxy refuses what was made of it; 4 it has not, in time.`,
		Example: `  coxswain wait VirtualService/shop/reviews --for acked --timeout 30s
  kubectl apply -f reviews.yaml && coxswain wait VirtualService/shop/reviews --after 17`,
		Args: exactly(1, "coxswain wait wants KIND/NAMESPACE/NAME, such as: coxswain wait VirtualService/default/reviews --for acked"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains([]string{"acked", "served", "gone"}, state) {
				return usageError{fmt.Errorf("--for is acked, served or gone, not %q", state)}
			}
			return a.wait(c.Context(), args[0], state, after, timeout)
		},
	}
	a = askedBy(p, c)
	c.Flags().StringVar(&state, "for", "acked", "acked, served or gone")
	c.Flags().Uint64Var(&after, "after", 0, "the row is to be newer than this revision")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	return c
}

// waitEvery is how often is asked.
const waitEvery = 200 * time.Millisecond

func (a *asked) wait(ctx context.Context, row, state string, after uint64, timeout time.Duration) error {
	timer, every := time.NewTimer(timeout), time.NewTicker(waitEvery)
	defer timer.Stop()
	defer every.Stop()
	for {
		var at admin.Progress
		if err := a.page(ctx, "/debug/progress?row="+url.QueryEscape(row), &at); err != nil {
			return err
		}
		missing, refused := lacking(at, state, after)
		switch {
		case refused != nil:
			return exitError{exitRefused, fmt.Errorf("%s is refused: %s", rowText(at.Row.RowName), strings.TrimSpace(refusalText(*refused)))}
		case missing == "":
			return a.print(at, func(w io.Writer, _ bool) {
				fmt.Fprintf(w, "%s of revision %d: %s, %d proxies are connected\n", rowText(at.Row.RowName), at.Row.Revision, state, at.Proxies)
			})
		}
		select {
		case <-timer.C:
			return exitError{exitTimeout, fmt.Errorf("%s: after %s %s", rowText(at.Row.RowName), timeout, missing)}
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// lacking says what a row's progress lacks for a state; nothing: it is there.
func lacking(at admin.Progress, state string, after uint64) (missing string, refused *admin.Refusal) {
	switch {
	case state == "gone" && !at.Row.Gone:
		return "it is still there", nil
	case state != "gone" && at.Row.Gone:
		return "there is no such row", nil
	case state != "gone" && at.Row.Revision <= after:
		return fmt.Sprintf("it is still of revision %d", at.Row.Revision), nil
	case at.Row.Revision > at.Served:
		return "it is not served yet", nil
	case state == "served":
		return "", nil
	case len(at.Refused) > 0:
		return "", &at.Refused[0]
	case len(at.Waiting) > 0:
		return fmt.Sprintf("%d proxies have not acknowledged it, such as %s", len(at.Waiting), at.Waiting[0]), nil
	}
	return "", nil
}
