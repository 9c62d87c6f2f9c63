package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

func historyCommand(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{
		Use:   "history",
		Short: "List the last revisions: when each was served, what for, what it changed, whom it reached, and whether it is kept",
		Long: `List the last revisions: when each was served, what for, what it changed, whom it reached, and whether it is kept. Those that are kept can be compared
(coxswain diff) and served again (coxswain pin). Revisions of endpoints alone are not listed: what they bring counts as part of the revision before.

The settings historyRevisions and historyBytes bound what is kept; with stateDir it outlives a restart.`,
		Example: `  coxswain history
  coxswain history -o wide
  coxswain history -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var h admin.History
			if err := a.page(c.Context(), "/debug/history", &h); err != nil {
				return err
			}
			return a.print(h, func(w io.Writer, wide bool) { historyTable(w, h, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}

// mostCauses is how many rows a line of the history names.
const mostCauses = 2

func historyTable(w io.Writer, h admin.History, wide bool) {
	fmt.Fprintln(w, "REVISION\tTIME\tKEPT\tCHANGED\tPROXIES\tREFUSED\tBECAUSE OF")
	for _, r := range h.Revisions {
		most := mostCauses
		if wide {
			most = len(r.Push.Rows)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Push.Revision, r.Push.Committed.Local().Format("2006-01-02 15:04:05"), keptWord(r), changedWords(r), reachedWords(r), r.Push.Refusals, causes(r, most))
	}
	if h.Fault != "" {
		fmt.Fprintf(w, "\n%s\n", h.Fault)
	}
	if h.MostRevisions == 0 {
		return
	}
	where := "in memory alone: stateDir has it outlive a restart"
	if h.File != "" {
		where = "in " + h.File
	}
	kept := 0
	for _, r := range h.Revisions {
		if r.Kept {
			kept++
		}
	}
	fmt.Fprintf(w, "\nkept are %d revisions of %d at most, %s of %s, %s\n", kept, h.MostRevisions, size(uint64(h.Bytes)), size(uint64(h.MostBytes)), where)
}

func keptWord(r admin.Kept) string {
	switch {
	case r.Push.Held:
		return "held"
	case r.Kept:
		return "yes"
	}
	return "no"
}

// changedWords says which types a revision changed views of.
func changedWords(r admin.Kept) string {
	var words []string
	for typeURL, n := range r.Push.Views {
		words = append(words, fmt.Sprintf("%s %d", lastWord(typeURL), n))
	}
	slices.Sort(words)
	return cmp.Or(strings.Join(words, ", "), "nothing")
}

func reachedWords(r admin.Kept) string {
	if r.Push.Waiting+r.Push.Left == 0 {
		return strconv.Itoa(r.Push.Proxies)
	}
	return fmt.Sprintf("%d of %d", r.Push.Proxies-r.Push.Waiting-r.Push.Left, r.Push.Proxies)
}

func causes(r admin.Kept, most int) string {
	var words []string
	for _, row := range r.Push.Rows[:min(most, len(r.Push.Rows))] {
		words = append(words, rowText(row.RowName)+" "+row.What)
	}
	if rest := len(r.Push.Rows) - most; rest > 0 {
		words = append(words, fmt.Sprintf("and %d others (-o wide)", rest))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func diffCommand(p *program) *cobra.Command {
	a := &asked{p: p}
	var from, to uint64
	var proxy string
	var exitCode bool
	c := &cobra.Command{
		Use:   "diff --from REVISION --to REVISION",
		Short: "Say what proxies had at one revision and not at another, field by field",
		Long: `Say what proxies had at one revision and not at another, field by field; of all that were there at both, or of one (--proxy). Proxies that differ alike
are shown once. Of proxies that were pinned then, what they would have had otherwise is compared. Secrets are never kept, and not compared; of one that stands in another
resource it is said that it changed. The
endpoints of a revision are those that were there when the next one came.

Exit codes: 0, or 3 with --exit-code if there is a difference; 1 a revision is not kept, or the control plane can't be asked; 2 the command line is wrong.`,
		Example: `  coxswain diff --from 41 --to 42
  coxswain diff --from 41 --to 42 --proxy web-7d9.shop -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == 0 || to == 0 {
				return usageError{errors.New("coxswain diff wants --from REVISION and --to REVISION; coxswain history lists them")}
			}
			differs, err := a.diff(c.Context(), from, to, proxy)
			if err == nil && differs && exitCode {
				return exitError{exitDiffers, errors.New("there are differences (--exit-code)")}
			}
			return err
		},
	}
	addrFlag(p, c, &a.addr)
	formatFlag(c, &a.format)
	c.Flags().Uint64Var(&from, "from", 0, "the revision that is compared with")
	c.Flags().Uint64Var(&to, "to", 0, "the revision that is compared")
	c.Flags().StringVar(&proxy, "proxy", "", "one proxy alone: a node's ID or, of one that is connected, NAME.NAMESPACE as it stands there")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 if there is a difference")
	return c
}

// exitDiffers is diff's exit code for a difference.
const exitDiffers = 3

// difference is what diff prints.
type difference struct {
	From     uint64       `json:"from"`
	To       uint64       `json:"to"`
	Compared int          `json:"compared"`
	Came     []string     `json:"came,omitempty"`
	Left     []string     `json:"left,omitempty"`
	Groups   []plan.Group `json:"groups"`
}

func (a *asked) diff(ctx context.Context, from, to uint64, proxy string) (differs bool, err error) {
	var d admin.Difference
	if err := a.page(ctx, fmt.Sprintf("/debug/diff?from=%d&to=%d&proxyID=%s", from, to, url.QueryEscape(proxy)), &d); err != nil {
		return false, err
	}
	out := difference{From: d.From, To: d.To, Compared: d.Compared, Came: d.Came, Left: d.Left, Groups: grouped(d.Resources)}
	return len(out.Groups) > 0, a.print(out, func(w io.Writer, wide bool) {
		fmt.Fprintf(w, "revision %d -> %d: %d proxies compared\n", d.From, d.To, d.Compared)
		for word, names := range map[string][]string{"came": d.Came, "left": d.Left} {
			if len(names) > 0 {
				fmt.Fprintf(w, "%d %s meanwhile, such as %s\n", len(names), word, names[0])
			}
		}
		if len(out.Groups) == 0 {
			fmt.Fprintln(w, "they had the same")
		}
		plan.WriteGroups(w, out.Groups, wide)
	})
}

// grouped puts what differs for the same proxies together.
func grouped(all []admin.DifferentBody) []plan.Group {
	out := []plan.Group{}
	at := map[string]int{}
	for _, r := range all {
		key := r.Type + "\x00" + strings.Join(r.Proxies, "\x00")
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, plan.Group{Type: r.Type, Proxies: r.Proxies})
		}
		switch g := &out[i]; {
		case r.Before == "":
			g.Added = append(g.Added, r.Name)
		case r.After == "":
			g.Removed = append(g.Removed, r.Name)
		case r.Withheld:
			g.Changed = append(g.Changed, plan.Resource{Name: r.Name, Changes: plan.Withheld()})
		default:
			g.Changed = append(g.Changed, plan.Resource{Name: r.Name, Changes: plan.Compared(r.Type, r.BeforeValue, r.AfterValue)})
		}
	}
	return out
}

const pinLong = `Have proxies served what they were served at a revision, whatever is made meanwhile, by whichever plugin, until coxswain unpin; or, without a
REVISION, list the pins. coxswain history lists the revisions that are kept. With the setting stateDir a pin outlives a restart.

SELECTOR says which proxies, connected or not: KEY=PATTERN, joined by commas, all of which must match. KEY is id, cluster, userAgent, generator,
namespace, locality, labels.KEY or metadata.KEY, as in select of plugins.yaml; * in a PATTERN stands for anything. NAME.NAMESPACE is short for the id
of a proxy. Without --proxies all proxies are pinned. Of two pins that select a proxy the later one counts; a pin of the same SELECTOR takes the
place of the one before.

A proxy gets what it had itself at the revision; one that was not there, what others of its view had; if it is unknown what that was it stays live,
and the list says so. Secrets are never kept: they stay live. So do, after a restart of the control plane, resources that have something secret
in them, which are not on its disk. So do always endpoints, for pods of then may be gone; those of clusters that live proxies
don't have any more are as they were then. --endpoints pins all of them.`

func pinCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	var order api.PinOrder
	c := &cobra.Command{
		Use:   "pin [REVISION]",
		Short: "Have proxies served what they were served at a revision, or list who is",
		Long:  pinLong,
		Example: `  coxswain pin 41
  coxswain pin 41 --proxies namespace=shop,labels.app=web
  coxswain pin 41 --proxies web-7d9.shop
  coxswain pin`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("coxswain pin wants one REVISION, such as: coxswain pin 41")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				if c.Flags().Changed("proxies") || order.Endpoints {
					return usageError{errors.New("coxswain pin wants a REVISION; coxswain history lists them")}
				}
				return a.pins(c.Context(), at, http.MethodGet, nil)
			}
			var err error
			if order.Revision, err = strconv.ParseUint(args[0], 10, 64); err != nil || order.Revision == 0 {
				return usageError{fmt.Errorf("%q is no revision's number; coxswain history lists them", args[0])}
			}
			order.Proxies = selector(order.Proxies)
			return a.pins(c.Context(), at, http.MethodPost, order)
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	c.Flags().StringVar(&order.Proxies, "proxies", "", "`SELECTOR` of the proxies (default: all)")
	c.Flags().BoolVar(&order.Endpoints, "endpoints", false, "pin endpoints, too: addresses of pods that may be gone")
	return c
}

func unpinCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	var order api.PinOrder
	c := &cobra.Command{
		Use:   "unpin",
		Short: "Have pinned proxies served again what is live",
		Long: `Take away all pins or, with --proxies, that of the same SELECTOR: the proxies are served what is live. coxswain pin lists the pins; coxswain plan and
coxswain diff say what there is now. Guards don't judge what proxies lose by that.`,
		Example: `  coxswain unpin
  coxswain unpin --proxies namespace=shop`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			order.All = !c.Flags().Changed("proxies")
			order.Proxies = selector(order.Proxies)
			return a.pins(c.Context(), at, http.MethodDelete, order)
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	c.Flags().StringVar(&order.Proxies, "proxies", "", "`SELECTOR` of the pin (default: all pins)")
	return c
}

// selector writes out terms that are proxies' names.
func selector(text string) string {
	if text == "" {
		return ""
	}
	terms := strings.Split(text, ",")
	for i, t := range terms {
		switch t = strings.TrimSpace(t); {
		case strings.Contains(t, "=") || t == "":
		case strings.Contains(t, "~"):
			terms[i] = "id=" + t
		default:
			terms[i] = "id=*~" + t + "~*"
		}
	}
	return strings.Join(terms, ",")
}

// pins asks for pins, or changes of them, and prints the answer.
func (a *asked) pins(ctx context.Context, at which, method string, order any) error {
	if err := a.check(); err != nil {
		return err
	}
	var out api.PinOutcome
	if _, _, err := a.p.ask(ctx, at, method, "/pins", order, &out); err != nil {
		return err
	}
	if out.Error != "" {
		return errors.New(out.Error)
	}
	return a.print(append([]report.Pin{}, out.Pins...), func(w io.Writer, wide bool) {
		if len(out.Pins) == 0 {
			fmt.Fprintln(w, "no proxies are pinned")
			return
		}
		if method == http.MethodDelete {
			for _, p := range out.Pins {
				fmt.Fprintf(w, "%d proxies are served what is live again: %s, which were pinned to revision %d for %s\n", len(p.Pinned), cmp.Or(p.Proxies, "all"), p.Revision, age(p.Since))
			}
			if note := out.Pins[0].Note; note != "" { // it is of all of them
				fmt.Fprintf(w, "\n%s\n", note)
			}
			return
		}
		pinTable(w, out.Pins, wide)
	})
}

// mostPinned is how many proxies a table names.
const mostPinned = 20

func pinTable(w io.Writer, all []admin.Pin, wide bool) {
	fmt.Fprintln(w, "REVISION\tPROXIES\tCONNECTED\tENDPOINTS\tFOR")
	for _, p := range all {
		endpoints := "live"
		if p.Endpoints {
			endpoints = "pinned"
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\n", p.Revision, cmp.Or(p.Proxies, "all"), len(p.Pinned), endpoints, age(p.Since))
	}
	for _, p := range all {
		if p.Note != "" {
			fmt.Fprintf(w, "\nrevision %d: %s\n", p.Revision, p.Note)
		}
	}
	fmt.Fprintln(w, "\nPROXY\tREVISION\tAS IT WAS\tAS OTHERS OF ITS VIEW\tLIVE")
	for _, p := range all {
		most := mostPinned
		if wide {
			most = len(p.Pinned)
		}
		for _, x := range p.Pinned[:min(most, len(p.Pinned))] {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", shortName(x.Node), p.Revision, typesBy(x, "own"), typesBy(x, "view"), typesBy(x, "live"))
		}
		more(w, len(p.Pinned)-most, false)
	}
}

// typesBy are the types of a proxy that it gets in a way.
func typesBy(x admin.PinnedProxy, how string) string {
	var words []string
	for typeURL, by := range x.Types {
		if by == how {
			words = append(words, lastWord(typeURL))
		}
	}
	slices.Sort(words)
	return cmp.Or(strings.Join(words, ", "), "-")
}

// liveRevisions returns the revisions that are kept, newest first.
func liveRevisions(p *program, c *cobra.Command) (all []string) {
	var h admin.History
	p.page(c, "/debug/history", &h)
	for _, r := range slices.Backward(h.Revisions) {
		if r.Kept {
			all = append(all, fmt.Sprintf("%d\t%s %s", r.Push.Revision, r.Push.Committed.Local().Format(time.DateTime), causes(r, 1)))
		}
	}
	return all
}

// livePins returns the selectors of the pins.
func livePins(p *program, c *cobra.Command) (all []string) {
	var list []admin.Pin
	p.page(c, "/debug/pins", &list)
	for _, x := range list {
		all = append(all, x.Proxies)
	}
	return all
}
