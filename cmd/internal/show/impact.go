package show

import (
	"cmp"
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Impact writes what depends on a row.
func Impact(w io.Writer, i admin.Impact, wide bool) {
	if i.Row.Gone {
		fmt.Fprintf(w, "There is no %s.\n", RowText(i.Row.RowName))
	} else {
		fmt.Fprintf(w, "%s, published by plugin %s from %s, as it is since revision %d\n", RowText(i.Row.RowName),
			i.Row.Plugin, cmp.Or(i.Row.Source, "-"), i.Row.Revision)
	}
	for _, n := range i.Through {
		fmt.Fprintf(w, "by way of %s\n", RowText(n))
	}
	if i.Unknown > 0 {
		fmt.Fprintf(w, "Of %d of %d resources it is not known: %s\n", i.Unknown, i.Asked, i.Why)
	}
	most := mostRows
	if wide {
		most = max(len(i.Resources), len(i.Proxies))
	}
	if len(i.Resources) == 0 {
		fmt.Fprintln(w, "\nNothing that a proxy has or asks for depends on it.")
		return
	}
	fmt.Fprintln(w, "\nTYPE\tRESOURCE\tPLUGIN\tPROXIES")
	for _, r := range i.Resources[:min(most, len(i.Resources))] {
		name := r.Name
		if r.Absent {
			name += " (there is none)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", LastWord(r.Type), name, r.Plugin, r.Proxies)
	}
	more(w, len(i.Resources)-most, false)
	fmt.Fprintf(w, "\nPROXIES (%d)\n", len(i.Proxies))
	for _, n := range i.Proxies[:min(most, len(i.Proxies))] {
		fmt.Fprintln(w, n)
	}
	more(w, len(i.Proxies)-most, false)
}
