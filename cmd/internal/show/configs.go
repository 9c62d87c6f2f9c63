package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
)

// Object is an object, and what is known of its effect.
type Object struct {
	admin.Object
	// Effect is nil where it is not known.
	Effect *Effect `json:"effect,omitempty"`
	// DeadEnds are parts that lead to nothing.
	DeadEnds []DeadEnd `json:"deadEnds,omitempty"`
}

// Effect is what was made from an object.
type Effect struct {
	Resources int  `json:"resources"`
	Proxies   int  `json:"proxies"`
	Unread    bool `json:"unread,omitempty"` // no plugin reads objects of its kind
}

// Weigh notes what was made from objects. Where no proxy is connected, or not all resources were
// explained, it is not known of which objects nothing was made.
func Weigh(list []Object, all admin.Effects) {
	known := map[admin.RowName]admin.Effect{}
	for _, e := range all.Rows {
		known[e.RowName] = e
	}
	for i, o := range list {
		table := o.Group + "/" + o.Kind
		e, ok := known[admin.RowName{Table: table, Key: o.Key}]
		unread := slices.Contains(all.Unread, table)
		if ok || unread || o.Served && all.Proxies > 0 && all.Unknown == 0 {
			list[i].Effect = &Effect{Resources: e.Resources, Proxies: e.Proxies, Unread: unread}
		}
	}
}

// String implements fmt.Stringer.
func (e *Effect) String() string {
	switch {
	case e == nil:
		return "-"
	case e.Unread:
		return "none: no plugin reads it"
	case e.Resources == 0:
		return "none"
	}
	return Many(e.Resources, "resource") + ", " + Many(e.Proxies, "proxy")
}

// state is an object's state in words.
func (o Object) state() string {
	switch {
	case slices.ContainsFunc(o.Faults, func(f admin.Fault) bool { return f.Code == report.CodeUnserved }):
		return "left out" // of a kind that nobody serves here, though it may be read
	case !o.Served && o.Key != "": // what has no name is no object
		return o.State + " (not served)"
	case o.Refusing > 0 && o.State == "refused by proxies":
		return "refused by " + Many(o.Refusing, "proxy")
	}
	return o.State
}

// effect is an object's effect in words.
func (o Object) effect() string {
	text := o.Effect.String()
	if n := len(o.DeadEnds); n > 0 {
		text += "; " + Many(n, "dead end")
	}
	return text
}

// Written are the objects that people wrote: what is wrong with one that a plugin derived is wrong
// with that which it comes from.
func Written(list []Object) []Object {
	var out []Object
	at := map[admin.RowName]int{}
	for _, o := range list {
		if o.Of == nil {
			at[admin.RowName{Table: o.Group + "/" + o.Kind, Key: o.Key}] = len(out)
			out = append(out, o)
		}
	}
	for _, o := range list {
		if o.Of == nil {
			continue
		}
		i, there := at[*o.Of]
		if !there {
			out = append(out, o)
			continue
		}
		own := &out[i]
		if own.Served && len(o.Faults) > 0 && !slices.ContainsFunc(own.Faults, func(f admin.Fault) bool { return f.Severity == o.Faults[0].Severity }) {
			own.State = o.State
		}
		if own.Refusing = max(own.Refusing, o.Refusing); o.State == "refused by proxies" && (own.State == "ok" || own.State == "warned") {
			own.State = o.State
		}
		own.Faults = append(slices.Clip(own.Faults), o.Faults...)
		own.DeadEnds = append(slices.Clip(own.DeadEnds), o.DeadEnds...)
	}
	return out
}

// Objects has a line for each object, and below what is wrong with it.
func Objects(w io.Writer, list []Object) {
	fmt.Fprintln(w, "KIND\tNAME\tSTATE\tEFFECT\tSOURCE\tPLUGIN")
	for _, o := range list {
		name := cmp.Or(o.Key, "-")
		if o.Key == "" && len(o.Faults) == 1 && o.Faults[0].Left > 0 {
			name = Many(o.Faults[0].Left, "object")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(o.Kind, "-"), name, o.state(), o.effect(), cmp.Or(o.Source, "-"), o.Plugin)
	}
	for _, o := range list {
		for _, f := range o.Faults {
			fmt.Fprintf(w, "\n%s\n", fault(o.Object, f, time.Now()))
		}
		for _, d := range o.DeadEnds {
			fmt.Fprintf(w, "\n%s\n", d.said(o))
		}
	}
}

// TurnedOff says which plugins do not run because of a setting, which.
func TurnedOff(w io.Writer, plugins []admin.Plugin) {
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

// fault is an object's fault in words. One without a place is of something that is made of the
// object.
func fault(o admin.Object, f admin.Fault, now time.Time) string {
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

// Apart says how much proxies refuse that say so for themselves alone.
func Apart(w io.Writer, refused []admin.Refusal) {
	if n := len(slices.DeleteFunc(refused, func(r admin.Refusal) bool { return r.Votes > 0 || r.Held })); n > 0 {
		fmt.Fprintf(w, "\n%s refused by proxies that speak for themselves alone: coxswain proxies --refused\n", Are(n, "resource"))
	}
}

// DeadEnd is a part of an object that leads to nothing: a route to a host that is not there, a
// selector that selects nobody.
type DeadEnd struct {
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// said is a dead end of an object in words.
func (d DeadEnd) said(o Object) string {
	text := fmt.Sprintf("%s: %s %s: ", cmp.Or(o.Source, "-"), o.Kind, o.Key)
	if d.Field != "" {
		text += d.Field + ": "
	}
	return text + d.Message + " (" + d.Code + ")"
}
