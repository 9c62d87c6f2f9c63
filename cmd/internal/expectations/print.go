package expectations

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Write prints a report: what failed with its walks, and the rules that nothing touches; wide: the
// walks of what passed, too, and all rules.
func (r *Report) Write(out io.Writer, wide bool) error {
	var b strings.Builder
	for _, f := range r.Faults {
		for _, of := range f.Faults {
			fmt.Fprintf(&b, "%s:%d:%d: %s: %s", of.File, of.Line, of.Column, of.Severity, of.Message)
			if f.State == "refused" {
				fmt.Fprintf(&b, " (%s %s is not served here)", f.Kind, f.Name)
			}
			b.WriteString("\n")
		}
	}
	failed := 0
	for _, x := range r.Results {
		if len(x.Faults) == 0 {
			fmt.Fprintf(&b, "ok    %s\n", x.Name)
		} else {
			failed++
			fmt.Fprintf(&b, "FAIL  %s\n      %s:%d\n", x.Name, r.File, x.Line)
		}
		for _, f := range x.Faults {
			fmt.Fprintf(&b, "      %s\n", indent(f))
		}
		if wide || len(x.Faults) > 0 {
			for _, at := range x.Walks {
				fmt.Fprintf(&b, "      the way through the proxy of %s:\n        %s\n", at.Workload,
					strings.ReplaceAll(strings.TrimSpace(at.Outcome.String()), "\n", "\n        "))
			}
		}
	}
	fmt.Fprintf(&b, "%s: %d passed, %d failed\n", r.File, len(r.Results)-failed, failed)
	if r.Rules != nil {
		r.coverage(&b, wide)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n      ") }

// Untouched are the rules that no request came to.
func (r *Report) Untouched() (list []Rule) {
	for _, rule := range r.Rules {
		if !rule.Touched {
			list = append(list, rule)
		}
	}
	return list
}

func (r *Report) coverage(b *strings.Builder, wide bool) {
	left := r.Untouched()
	switch {
	case len(left) == 0:
		fmt.Fprintf(b, "all %d rules are touched\n", len(r.Rules))
	default:
		fmt.Fprintf(b, "%d of %d rules are touched by no expectation:\n", len(left), len(r.Rules))
	}
	if wide {
		left = r.Rules
	}
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, rule := range left {
		fmt.Fprintf(w, "  %s %s\t%s", rule.Kind, rule.Object, rule.Rule)
		if wide {
			fmt.Fprintf(w, "\t%s", map[bool]string{true: "touched", false: "no"}[rule.Touched])
		}
		fmt.Fprintf(w, "\t%s\n", rule.Source)
	}
	_ = w.Flush() // into memory
}

// below names a place as the directory is named that it is in.
func below(source, dir string) string {
	whole, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return source
	}
	if rest, ok := strings.CutPrefix(source, whole+string(filepath.Separator)); ok {
		return filepath.Join(dir, rest)
	}
	return source
}
