package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// pushesShown is how many of the last pushes top shows.
const pushesShown = 8

// overview is what top shows at a time.
type overview struct {
	// Revision is the last one. Proxies are the connected streams: Synced have acknowledged all
	// that they were sent, Pending have not answered yet, Refusing refuse something.
	Revision uint64 `json:"revision"`
	Proxies  int    `json:"proxies"`
	Synced   int    `json:"synced"`
	Pending  int    `json:"pending"`
	Refusing int    `json:"refusing"`
	// Rates are of the revisions since the reading before; nil: there was none.
	Rates *pushRates `json:"rates,omitempty"`
	// List are some of the proxies, those that want a look first; Last are the last pushes, the
	// latest first.
	List []proxyLine  `json:"list"`
	Last []admin.Push `json:"last"`
}

// pushRates are how much is pushed in a second.
type pushRates struct {
	Pushes    float64 `json:"pushes"`
	Responses float64 `json:"responses"`
	Bytes     float64 `json:"bytes"`
}

// proxyLine is a proxy in top.
type proxyLine struct {
	Node string `json:"node"`
	// State is refused, held, pending, not sent or synced, whichever of its types is worst; Types
	// are those that are so, with the reason where one was refused.
	State  string   `json:"state"`
	Types  []string `json:"types,omitempty"`
	Reason string   `json:"reason,omitempty"`
	// At is since when; the zero time: that isn't known.
	At     time.Time `json:"since,omitzero"`
	Remote string    `json:"remote"`
}

// worst are the states of a proxy's types, the one first that wants a look most.
var worst = []string{"refused", "held", "pending", "not sent", "synced"}

func topCommand(p *program) *cobra.Command {
	a, once, interval, lines := &asked{p: p}, false, 2*time.Second, 20
	c := &cobra.Command{
		Use:   "top",
		Short: "Show proxies and pushes of a running control plane, live: who is in sync, who refuses, what was pushed last and why",
		Long: `Show proxies and pushes of a running control plane, again and again until it is interrupted.

The first line counts connected proxies, and pushes, responses and bytes a second since the last reading. Below are proxies, those first that refuse
something, then those that have not answered; and the last pushes with what they were for. coxswain plugins top shows plugins.`,
		Example: `  coxswain top
  coxswain top --lines 50 --interval 500ms
  coxswain top --once -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if interval < 10*time.Millisecond {
				return usageError{fmt.Errorf("--interval is at least 10ms, not %v", interval)}
			}
			if lines < 1 {
				return usageError{fmt.Errorf("--lines is at least 1, not %d", lines)}
			}
			return a.overview(c.Context(), once, interval, lines)
		},
	}
	addrFlag(p, c, &a.addr)
	formatFlag(c, &a.format)
	c.Flags().BoolVar(&once, "once", false, "read and show it once and end")
	c.Flags().DurationVar(&interval, "interval", interval, "time between readings")
	c.Flags().IntVar(&lines, "lines", lines, "proxies that are shown at most")
	return c
}

// overview shows readings until ctx ends.
func (a *asked) overview(ctx context.Context, once bool, interval time.Duration, lines int) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var after uint64
	var before time.Time
	for {
		var proxies []admin.ProxyStatus
		var pushes []admin.Push
		err := a.page(ctx, "/debug/ledger", &proxies)
		if err == nil {
			err = a.page(ctx, "/debug/pushes", &pushes)
		}
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		o := overviewOf(proxies, pushes, lines)
		if !before.IsZero() {
			o.Rates = ratesOf(pushes, after, now.Sub(before))
		}
		after, before = o.Revision, now
		if err := a.show(o, once, func(w io.Writer, wide bool) { overviewTable(w, o, wide) }); err != nil || once {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// overviewOf counts proxies, and takes those that want a look most, and the last pushes.
func overviewOf(proxies []admin.ProxyStatus, pushes []admin.Push, lines int) overview {
	o := overview{Proxies: len(proxies), List: []proxyLine{}, Last: []admin.Push{}}
	for _, p := range proxies {
		l := lineOf(p)
		switch l.State {
		case "refused", "held":
			o.Refusing++
		case "pending", "not sent":
			o.Pending++
		default:
			o.Synced++
		}
		o.List = append(o.List, l)
	}
	slices.SortFunc(o.List, func(a, b proxyLine) int {
		return cmp.Or(cmp.Compare(slices.Index(worst, a.State), slices.Index(worst, b.State)), b.At.Compare(a.At), cmp.Compare(a.Node, b.Node))
	})
	o.List = o.List[:min(lines, len(o.List))]
	for _, p := range slices.Backward(pushes) {
		if o.Revision = max(o.Revision, p.Revision); !p.Empty() && len(o.Last) < pushesShown {
			o.Last = append(o.Last, p)
		}
	}
	return o
}

func lineOf(p admin.ProxyStatus) proxyLine {
	l := proxyLine{Node: p.Node, Remote: p.Remote, State: "synced"}
	rank := func(state string) int {
		if i := slices.Index(worst, state); i >= 0 {
			return i
		}
		return len(worst)
	}
	for _, t := range p.Types {
		switch is, was := rank(t.State), rank(l.State); {
		case is < was:
			l.State, l.Types, l.Reason, l.At = t.State, []string{lastWord(t.Type)}, t.Refused, t.At
		case is == was:
			l.Types = append(l.Types, lastWord(t.Type))
			l.Reason = cmp.Or(l.Reason, t.Refused)
			if t.At.After(l.At) {
				l.At = t.At
			}
		}
	}
	if l.State == "synced" {
		l.Types = nil
	}
	return l
}

// ratesOf are the rates of the pushes after a revision.
func ratesOf(pushes []admin.Push, after uint64, took time.Duration) *pushRates {
	r := &pushRates{}
	for _, p := range pushes {
		if p.Revision <= after || p.Empty() {
			continue
		}
		r.Pushes++
		for _, s := range p.Sent {
			r.Responses, r.Bytes = r.Responses+float64(s.Responses), r.Bytes+float64(s.Bytes)
		}
	}
	for _, n := range []*float64{&r.Pushes, &r.Responses, &r.Bytes} {
		*n /= took.Seconds()
	}
	return r
}

func overviewTable(w io.Writer, o overview, wide bool) {
	fmt.Fprintf(w, "revision %d; %s: %d synced, %d pending, %d refusing", o.Revision, many(o.Proxies, "proxy"), o.Synced, o.Pending, o.Refusing)
	if r := o.Rates; r != nil {
		fmt.Fprintf(w, "; %.1f pushes/s, %.1f responses/s, %.1f kB/s", r.Pushes, r.Responses, r.Bytes/1e3)
	}
	fmt.Fprint(w, "\n\n")
	fmt.Fprint(w, "PROXY\tSTATE\tSINCE\tTYPES\tREASON")
	if wide {
		fmt.Fprint(w, "\tREMOTE\tNODE")
	}
	fmt.Fprintln(w)
	for _, l := range o.List {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", shortName(l.Node), l.State, age(l.At), cmp.Or(strings.Join(l.Types, ", "), "-"), cmp.Or(l.Reason, "-"))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s", l.Remote, l.Node)
		}
		fmt.Fprintln(w)
	}
	if hidden := o.Proxies - len(o.List); hidden > 0 {
		fmt.Fprintf(w, "and %d more (--lines)\n", hidden)
	}
	fmt.Fprintln(w)
	for _, p := range o.Last {
		fmt.Fprintln(w, pushLine(p))
	}
}
