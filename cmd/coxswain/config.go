package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func (p *program) config() *cobra.Command {
	return listing(p, &cobra.Command{
		Use:   "config",
		Short: "Show the configuration of a running control plane: where it came from, and what was refused and why",
		Example: `  coxswain config
  coxswain config -o json`,
	}, "/debug/configz", configTable)
}

// configTable has a line for each object, and below what is wrong.
func configTable(w io.Writer, list []admin.Object) {
	fmt.Fprintln(w, "KIND\tNAME\tSTATE\tSOURCE\tPLUGIN")
	for _, o := range list {
		state := o.State
		if !o.Served && o.Key != "" { // what has no name is no object
			state += " (not served)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(o.Kind, "-"), cmp.Or(o.Key, "-"), state, cmp.Or(o.Source, "-"), o.Plugin)
	}
	for _, o := range list {
		for _, f := range o.Faults {
			fmt.Fprintf(w, "\n%s\n", told(o, f, time.Now()))
		}
	}
}

// told is an object's fault in words. One without a place is of something that is made of the
// object.
func told(o admin.Object, f admin.Fault, now time.Time) string {
	at := fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	if f.File == "" {
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
