package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// printRows says what became of a plugin's rows.
func printRows(w io.Writer, d *api.Detail) {
	if d.Away != nil {
		fmt.Fprintf(w, "  %s\n", awayOf(d.Away))
	}
	for _, t := range d.Tables {
		hidden := 0
		for _, h := range t.Hidden {
			hidden += h.Rows
		}
		fmt.Fprintf(w, "  rows of %s: %d served, %d hidden", t.Table, t.Served, hidden)
		if t.Held > 0 {
			fmt.Fprintf(w, ", changes of %d held: coxswain hold show %s", t.Held, d.Name)
		}
		fmt.Fprintln(w)
		for _, h := range t.Hidden {
			fmt.Fprintf(w, "    hidden, %d (%s): %s; such as %s\n", h.Rows, h.Reason, h.Text, h.Example)
		}
	}
	for _, r := range d.Dropped {
		what := map[string]string{"kept": "kept as they were", "noted": "served but for something"}[r.Effect]
		fmt.Fprintf(w, "  %s, %d (%s): such as %s\n", cmp.Or(what, r.Effect), r.Count, r.Reason, r.Example)
	}
}
