package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/rollout"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/spf13/cobra"
)

func configCommand(p *program) *cobra.Command {
	var a *asked
	var effect bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration of a running control plane: where it came from, what it is good for, and what was refused and why",
		Long: `Show the configuration of a running control plane: where each object came from, what it is good for, and what was refused and why.

An object's state is ok, warned, refused (its last good version is served, if there is one), held (it was taken, but something that was made of it was
not, or proxies refuse it now) or left out (istiod serves its kind, and nobody does here). EFFECT is how many resources were made from it, by itself or by way of rows that plugins derived from it, and how many
proxies are in their views; none: it changes nothing that a connected proxy has. Where a part of the object leads to nothing (a route to a host that is
not there, a selector that selects nobody), EFFECT counts it, and a line below says which, as coxswain analyze --live does. All generators are asked about all that they have made for that, which
takes some seconds in a large mesh; --effect=false leaves it out.`,
		Example: `  coxswain config
  coxswain config -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []effective
			if err := a.page(c.Context(), "/debug/configs", &list); err != nil {
				return err
			}
			if effect {
				var all admin.Effects
				if err := a.page(c.Context(), "/debug/effects", &all); err != nil {
					fmt.Fprintf(p.err, "coxswain: what objects are good for is not known: %v\n", err)
				} else {
					weigh(list, all)
				}
				if err := noteDeadEnds(c.Context(), list, a.addr); err != nil {
					fmt.Fprintf(p.err, "coxswain: what leads to nothing is not known: %v\n", err)
				}
			}
			return a.print(list, func(w io.Writer, _ bool) {
				configTable(w, list)
				var pins []admin.Pin
				var stage admin.Rollout
				// What an older control plane does not say is not known, and nothing is said of it.
				_, _ = a.page(c.Context(), "/debug/pins", &pins), a.page(c.Context(), "/debug/rollout", &stage)
				heldBack(w, pins, stage)
				var plugins []admin.Plugin
				_ = a.page(c.Context(), "/debug/plugins", &plugins)
				turnedOff(w, plugins)
				var refused []admin.Refusal
				_ = a.page(c.Context(), "/debug/refusals", &refused)
				apart(w, refused)
			})
		},
	}
	a = askedBy(p, c)
	c.Flags().BoolVar(&effect, "effect", true, "say what was made from each object")
	return c
}

// effective is an object, and what is known of its effect.
type effective struct {
	admin.Object
	// Effect is nil where it is not known.
	Effect *objectEffect `json:"effect,omitempty"`
	// DeadEnds are parts that lead to nothing.
	DeadEnds []deadEnd `json:"deadEnds,omitempty"`
}

// objectEffect is what was made from an object.
type objectEffect struct {
	Resources int  `json:"resources"`
	Proxies   int  `json:"proxies"`
	Unread    bool `json:"unread,omitempty"` // no plugin reads objects of its kind
}

// weigh notes what was made from objects. Where no proxy is connected, or not all resources were
// explained, it is not known of which objects nothing was made.
func weigh(list []effective, all admin.Effects) {
	known := map[admin.RowName]admin.Effect{}
	for _, e := range all.Rows {
		known[e.RowName] = e
	}
	for i, o := range list {
		table := o.Group + "/" + o.Kind
		e, ok := known[admin.RowName{Table: table, Key: o.Key}]
		unread := slices.Contains(all.Unread, table)
		if ok || unread || o.Served && all.Proxies > 0 && all.Unknown == 0 {
			list[i].Effect = &objectEffect{Resources: e.Resources, Proxies: e.Proxies, Unread: unread}
		}
	}
}

func (e *objectEffect) String() string {
	switch {
	case e == nil:
		return "-"
	case e.Unread:
		return "none: no plugin reads it"
	case e.Resources == 0:
		return "none"
	}
	return many(e.Resources, "resource") + ", " + many(e.Proxies, "proxy")
}

// state is an object's state in words.
func (o effective) state() string {
	unserved := func(f admin.Fault) bool { return f.Code == report.CodeUnserved }
	switch {
	case !o.Served && len(o.Faults) > 0 && !slices.ContainsFunc(o.Faults, func(f admin.Fault) bool { return !unserved(f) }):
		return "left out" // of a kind that nobody serves here
	case !o.Served && o.Key != "": // what has no name is no object
		return o.State + " (not served)"
	}
	return o.State
}

// effect is an object's effect in words.
func (o effective) effect() string {
	text := o.Effect.String()
	if n := len(o.DeadEnds); n > 0 {
		text += "; " + many(n, "dead end")
	}
	return text
}

// configTable has a line for each object, and below what is wrong.
func configTable(w io.Writer, list []effective) {
	fmt.Fprintln(w, "KIND\tNAME\tSTATE\tEFFECT\tSOURCE\tPLUGIN")
	for _, o := range list {
		name := cmp.Or(o.Key, "-")
		if o.Key == "" && len(o.Faults) == 1 && o.Faults[0].Left > 0 {
			name = many(o.Faults[0].Left, "object")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(o.Kind, "-"), name, o.state(), o.effect(), cmp.Or(o.Source, "-"), o.Plugin)
	}
	for _, o := range list {
		for _, f := range o.Faults {
			fmt.Fprintf(w, "\n%s\n", told(o.Object, f, time.Now()))
		}
		for _, d := range o.DeadEnds {
			fmt.Fprintf(w, "\n%s\n", d.said(o))
		}
	}
}

// heldBack says which proxies are served what objects were, and not what they are.
func heldBack(w io.Writer, pins []admin.Pin, stage admin.Rollout) {
	for _, p := range pins {
		if len(p.Pinned) > 0 {
			fmt.Fprintf(w, "\n%s pinned to revision %d: nothing that has changed since then reaches them (coxswain pin)\n", are(len(p.Pinned), "proxy"), p.Revision)
		}
	}
	if stage.State == rollout.Staged || stage.State == rollout.Withdrawn {
		fmt.Fprintf(w, "\n%s not served what has changed since revision %d: a push is %s (coxswain rollout status)\n", are(len(stage.Held), "proxy"), stage.Base, stage.State)
	}
}

// turnedOff says which plugins do not run because of a setting, which.
func turnedOff(w io.Writer, plugins []admin.Plugin) {
	why := map[string][]string{}
	for _, p := range plugins {
		if p.Off != "" {
			why[p.Off] = append(why[p.Off], p.Name)
		}
	}
	for _, off := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(w, "\n%s: these controllers do not run: %s\n", off, strings.Join(why[off], ", "))
	}
}

// told is an object's fault in words. One without a place is of something that is made of the
// object.
func told(o admin.Object, f admin.Fault, now time.Time) string {
	at := fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	switch {
	case strings.Contains(f.File, "://") && f.Line <= 1 && f.Column <= 1: // an object of a server has no lines
		at = f.File
	case f.File == "":
		at = fmt.Sprintf("%s: %s %s", cmp.Or(o.Source, "-"), o.Kind, o.Key)
	}
	text := at + ": " + f.Severity + ": "
	if f.Field != "" {
		text += f.Field + ": "
	}
	text += f.Message
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	if f.Code != "" {
		text += " (" + f.Code + ")"
	}
	if !f.Since.IsZero() {
		text += fmt.Sprintf(", for %s", now.Sub(f.Since).Round(time.Second))
	}
	return text
}

// apart says how much proxies refuse that say so for themselves alone.
func apart(w io.Writer, refused []admin.Refusal) {
	if n := len(slices.DeleteFunc(refused, func(r admin.Refusal) bool { return r.Votes > 0 || r.Held })); n > 0 {
		fmt.Fprintf(w, "\n%s refused by proxies that speak for themselves alone: coxswain proxies --refused\n", are(n, "resource"))
	}
}
