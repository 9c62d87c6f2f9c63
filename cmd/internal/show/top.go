package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// pushesShown is how many of the last pushes top shows.
const pushesShown = 8

// Overview is what top shows at a time.
type Overview struct {
	// Revision is the last one. Proxies are the connected streams: Synced have acknowledged all
	// that they were sent, Pending have not answered yet, Refusing refuse something.
	Revision uint64 `json:"revision"`
	Proxies  int    `json:"proxies"`
	Synced   int    `json:"synced"`
	Pending  int    `json:"pending"`
	Refusing int    `json:"refusing"`
	// Rates are of the revisions since the reading before; nil: there was none.
	Rates *Rates `json:"rates,omitempty"`
	// List are some of the proxies, those that want a look first; Last are the last pushes, the
	// latest first.
	List []proxyLine  `json:"list"`
	Last []admin.Push `json:"last"`
}

// Rates are how much is pushed in a second.
type Rates struct {
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

// OverviewOf counts proxies, and takes those that want a look most, and the last pushes.
func OverviewOf(proxies []admin.ProxyStatus, pushes []admin.Push, lines int) Overview {
	o := Overview{Proxies: len(proxies), List: []proxyLine{}, Last: []admin.Push{}}
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
			l.State, l.Types, l.Reason, l.At = t.State, []string{LastWord(t.Type)}, t.Refused, t.At
		case is == was:
			l.Types = append(l.Types, LastWord(t.Type))
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

// RatesOf are the rates of the pushes after a revision.
func RatesOf(pushes []admin.Push, after uint64, took time.Duration) *Rates {
	r := &Rates{}
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

// Mesh writes an Overview.
func Mesh(w io.Writer, o Overview, wide bool) {
	fmt.Fprintf(w, "revision %d; %s: %d synced, %d pending, %d refusing", o.Revision, Many(o.Proxies, "proxy"), o.Synced, o.Pending, o.Refusing)
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s", ShortName(l.Node), l.State, Age(l.At), cmp.Or(strings.Join(l.Types, ", "), "-"), cmp.Or(l.Reason, "-"))
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
		fmt.Fprintln(w, Push(p))
	}
}

// Push is a push in a line.
func Push(p admin.Push) string {
	var what []string
	for _, r := range p.Rows {
		if len(what) == 3 {
			what = append(what, fmt.Sprintf("and %d others", len(p.Rows)-3))
			break
		}
		what = append(what, RowText(r.RowName)+" "+r.What)
	}
	if len(what) == 0 {
		total := 0
		for _, n := range p.Changed {
			total += n
		}
		what = []string{Many(total, "row")}
	}
	resources, bytes := 0, int64(0)
	for _, s := range p.Sent {
		resources, bytes = resources+s.Resources, bytes+s.Bytes
	}
	line := fmt.Sprintf("%s  revision %d: %s; ", p.Committed.Local().Format("15:04:05.000"), p.Revision, strings.Join(what, ", "))
	switch {
	case p.Held:
		return line + "held, as too much would have gone (coxswain hold)"
	case p.Proxies == 0:
		return line + "no proxy has any of it"
	}
	line += fmt.Sprintf("%d of %s have it", p.Proxies-p.Waiting-p.Left, Many(p.Proxies, "proxy"))
	if p.Done.IsZero() {
		line += ", the others have not answered"
	} else {
		line += fmt.Sprintf(" after %s", p.Done.Sub(p.Committed).Round(time.Millisecond))
	}
	line += fmt.Sprintf(" (%s, %s)", Many(resources, "resource"), cmp.Or(Size(uint64(bytes)), "-"))
	if p.Refusals > 0 {
		line += fmt.Sprintf("; %s refused: %s", Many(p.Refusals, "response"), p.Refused[0].Reason)
	}
	return line
}
