package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/swap"
)

// Change writes what became of a change of a plugin.
func Change(w io.Writer, c *swap.Change) {
	fmt.Fprintf(w, "%s %s %s", c.Plugin, c.What, c.State)
	if c.From != c.To && c.From != "" && c.To != "" {
		fmt.Fprintf(w, ": %s -> %s", c.From, c.To)
	}
	fmt.Fprintf(w, ", after %v\n", c.Took.Round(1e6))
	if c.Difference != nil {
		Difference(w, c.Difference)
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"the guard would say no", c.Guard}, {"because", c.Reasons}, {"refused", c.Refusals}, {"note", c.Notes}} {
		for _, line := range list.lines {
			fmt.Fprintf(w, "  %s: %s\n", list.title, line)
		}
	}
	if !c.WarmUntil.IsZero() && c.State == swap.Switched {
		fmt.Fprintf(w, "  the old instance stays warm until %s\n", c.WarmUntil.Format("15:04:05"))
	}
}

// Difference writes what would differ for proxies, in counts and examples.
func Difference(w io.Writer, d *guard.Difference) {
	fmt.Fprintf(w, "  %s\n", d)
	for _, t := range d.Tables {
		if t.Added+t.Removed+t.Changed == 0 {
			continue
		}
		counts(w, t.Table, t.Counts, "", t.Examples)
	}
	for _, t := range d.Types {
		if t.Added+t.Removed+t.Changed+t.Rewritten == 0 {
			continue
		}
		more := "; " + Many(t.Views, "view") + ", " + Many(t.Proxies, "proxy")
		if t.Rewritten > 0 {
			more += fmt.Sprintf("; %d written otherwise that mean the same", t.Rewritten)
		}
		counts(w, t.Type[strings.LastIndexAny(t.Type, "./")+1:], t.Counts, more, t.Examples)
		for _, line := range t.Fields {
			fmt.Fprintf(w, "      %s\n", line)
		}
	}
	for _, line := range d.Verdicts {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

func counts(w io.Writer, what string, c guard.Counts, more string, examples []string) {
	fmt.Fprintf(w, "  %s: %d -> %d: +%d −%d ~%d%s\n", what, c.Before, c.After, c.Added, c.Removed, c.Changed, more)
	for _, line := range examples {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if rest := c.Added + c.Removed + c.Changed - len(examples); rest > 0 {
		fmt.Fprintf(w, "    and %d more\n", rest)
	}
}
