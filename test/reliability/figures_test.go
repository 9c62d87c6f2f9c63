package reliability

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// figures are what was seen of a trial.
type figures struct {
	asked, failed int
	// calm is the slowest edit before the abuse, worst the slowest while it lasted; lost never came
	// in time.
	calm, worst time.Duration
	edits, lost int
	// before and core are MiB of the core before and at its peak, generator those of istio.
	before, core, generator int
	// restarts of plugins that should not have been, ended are streams of well-behaved clients that
	// were.
	restarts, ended int
	notes           []string
}

// promised is how long an edit may take.
func (f *figures) promised() time.Duration { return 2*f.calm + time.Second }

func (f *figures) requests() string { return fmt.Sprintf("%d of %d", f.failed, f.asked) }

func (f *figures) delay() string {
	s := fmt.Sprintf("%s -> %s", seconds(f.calm), seconds(f.worst))
	switch {
	case f.edits == 0:
		return "-"
	case f.lost > 0:
		return fmt.Sprintf("%s; %d of %d lost", s, f.lost, f.edits)
	}
	return s
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (f *figures) memory() string { return fmt.Sprintf("%d / %d", f.core, f.generator) }

// row is a trial's in the table.
type row struct {
	trial   trial
	figures *figures
	// held reports whether the promise was kept, or that it was not tried.
	held string
}

// ended is the row when its test is over. Where all run, it is shown at once.
func (r row) ended(t *testing.T) row {
	r.held = "yes"
	switch {
	case t.Failed():
		r.held = "**no**"
	case t.Skipped():
		r.held = "not tried"
	}
	if *all {
		f := r.figures
		fmt.Fprintf(os.Stderr, "%-32s held: %-9s failed %-12s core/generator MiB %-12s edit %-28s restarts %d %s\n",
			r.trial.name, r.held, f.requests(), f.memory(), f.delay(), f.restarts, strings.Join(f.notes, "; "))
	}
	return r
}

const (
	begin = "<!-- figures: made by `make reliability` -->\n"
	end   = "<!-- end of figures -->"
)

// writeTable puts the figures between the marks of a document. Rows of what was not run stay.
func writeTable(t *testing.T, file string, rows []row) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table: %s … %s", file, begin, end)
	}
	lines := map[string]string{}
	for line := range strings.Lines(old) {
		if fields := strings.SplitN(line, "`", 3); len(fields) == 3 {
			lines[fields[1]] = line
		}
	}
	once := earlier(t)
	for _, r := range rows {
		lines[r.trial.name] = r.line(once[r.trial.name])
	}
	if err := os.WriteFile(file, []byte(before+begin+table(lines)+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r row) line(before string) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s |\n",
		r.trial.name, r.trial.promise, r.figures.requests(), r.figures.memory(), r.figures.delay(), r.held, before)
}

func table(lines map[string]string) string {
	var b strings.Builder
	b.WriteString(
		"| test | promised | failed requests | MiB of core / generator | edit of another, calm -> then | held | before |\n|---|---|---|---|---|---|---|\n",
	)
	for _, c := range trials() {
		b.WriteString(lines[c.name])
	}
	return b.String()
}

// earlier reads what was seen before there were such promises: lines of NAME, tab, words.
func earlier(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/before.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, words, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all[name] = words
	}
	return all
}
