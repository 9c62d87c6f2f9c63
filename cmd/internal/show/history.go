package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// mostCauses is how many rows a line of the history names.
const mostCauses = 2

// History writes the last revisions, a line for each.
func History(w io.Writer, h admin.History, wide bool) {
	fmt.Fprintln(w, "REVISION\tTIME\tKEPT\tCHANGED\tPROXIES\tREFUSED\tBECAUSE OF")
	for _, r := range h.Revisions {
		most := mostCauses
		if wide {
			most = len(r.Push.Rows)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Push.Revision,
			r.Push.Committed.Local().Format("2006-01-02 15:04:05"), keptWord(r), changedWords(r), reachedWords(r),
			r.Push.Refusals, Causes(r, most))
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
	fmt.Fprintf(w, "\nkept: %s of %d at most, %s of %s, %s\n", Many(kept, "revision"), h.MostRevisions, Size(uint64(h.Bytes)), Size(uint64(h.MostBytes)), where)
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
		words = append(words, fmt.Sprintf("%s %d", LastWord(typeURL), n))
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

// Causes names the rows that a revision was for, at most so many.
func Causes(r admin.Kept, most int) string {
	var words []string
	for _, row := range r.Push.Rows[:min(most, len(r.Push.Rows))] {
		words = append(words, RowText(row.RowName)+" "+row.What)
	}
	if rest := len(r.Push.Rows) - most; rest > 0 {
		words = append(words, fmt.Sprintf("and %d others (-o wide)", rest))
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}
