package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// Recording writes what a recording of a session has.
func Recording(w io.Writer, r *recording.Recording) {
	fmt.Fprintf(w, "plugin %s, recorded on %s\n", r.Plugin, r.Began.Format(time.RFC3339))
	for i, session := range r.Sessions {
		fmt.Fprintf(w, "session %d\n", i+1)
		for n, m := range session {
			fmt.Fprintf(w, "%6d %12s  %s\n", n+1, m.At.Round(time.Microsecond), plugintest.Describe(m.FromCore, m.Frame))
		}
	}
	if r.Note != "" {
		fmt.Fprintln(w, r.Note)
	}
}

// Replayed writes how a plugin answered a recording.
func Replayed(w io.Writer, s plugintest.Replayed) {
	Result(w, s.Result)
	for _, note := range s.Notes {
		fmt.Fprintf(w, "      %s\n", note)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "      ASKED, ANSWERED\tTHEN\tP50\tP99\tMAX\tNOW\tP50\tP99\tMAX")
	for _, g := range s.Timings {
		fmt.Fprintf(t, "      %s\t%s\t%s\n", g.What, spread(g.Then), spread(g.Now))
	}
	_ = t.Flush()
}

func spread(s plugintest.Spread) string {
	short := func(d time.Duration) time.Duration { return cmp.Or(d.Round(10*time.Microsecond), d) }
	if s.Count == 0 {
		return "0\t-\t-\t-"
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s", s.Count, short(s.P50), short(s.P99), short(s.Max))
}

// Result writes how a case of the conformance suite ended.
func Result(w io.Writer, r plugintest.Result) {
	switch {
	case len(r.Failures) > 0:
		fmt.Fprintf(w, "FAIL  %s\n", r.Case)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "      %s\n", strings.ReplaceAll(f, "\n", "\n      "))
		}
	case r.Skipped != "":
		fmt.Fprintf(w, "skip  %s: %s\n", r.Case, r.Skipped)
	default:
		fmt.Fprintf(w, "ok    %-24s %s\n", r.Case, r.Took.Round(time.Millisecond))
	}
}

// Summary counts, and reports whether a case failed.
func Summary(w io.Writer, all []plugintest.Result) (failed bool) {
	passed, skipped := 0, 0
	for _, r := range all {
		if r.Passed() {
			passed++
		} else if r.Skipped != "" {
			skipped++
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, len(all)-passed-skipped, skipped)
	return passed+skipped < len(all)
}
