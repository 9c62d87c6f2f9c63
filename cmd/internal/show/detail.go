package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

// Detail writes all that is known of a plugin.
func Detail(w io.Writer, d *api.Detail) {
	fmt.Fprintf(w, "%s: %s, %s, %s since %s\n", d.Name, d.Kind, d.Carrier, d.State, d.Since.Format("2006-01-02 15:04:05"))
	fmt.Fprintf(w, "  declared at %s\n", d.At)
	if d.PID > 0 {
		fmt.Fprintf(w, "  %s %s, process %d, %s, %d rows, revision %d, %d restarts\n", d.Plugin.Plugin, d.Version,
			d.PID, Size(d.Memory), d.Rows, d.Revision, d.Restarts)
	}
	for _, v := range []struct{ title, text string }{
		{"artifact", d.Artifact}, {"signed by", d.Signed},
		{"runs as", d.User}, {"may not", strings.Join(d.Sandbox, "\n")},
		{"others can change it", strings.Join(d.Exposed, "\n")},
		{"not taken from it", strings.Join(d.Lacking, "\n")},
		{"failed last", d.LastError}, {"plugins.yaml is not followed", d.FileFault}, {"the program has changed", d.Outdated},
	} {
		if v.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", v.title, strings.ReplaceAll(strings.TrimSpace(v.text), "\n", "\n    "))
		}
	}
	Rows(w, d)
	for i := len(d.Changes) - 1; i >= 0; i-- {
		fmt.Fprintf(w, "\n%s ", d.Changes[i].At.Format("2006-01-02 15:04:05"))
		Change(w, d.Changes[i])
	}
}

// Rows says what became of a plugin's rows.
func Rows(w io.Writer, d *api.Detail) {
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
