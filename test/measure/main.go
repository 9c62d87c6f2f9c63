// Command measure prints how long functions and files are and how large types are, of one or more
// folders beside each other: `go run ./test/measure . ../another`. docs/decisions/halls.md has what
// it said.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/sizes"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: measure FOLDER...")
		os.Exit(2)
	}
	var all []sizes.Report
	for _, dir := range os.Args[1:] {
		t, err := sizes.Read(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "measure:", err)
			os.Exit(1)
		}
		all = append(all, t.Report(module(dir)))
	}
	fmt.Printf("| | %s |\n|---%s|\n", strings.Join(os.Args[1:], " | "), strings.Repeat("|---", len(all)))
	for _, row := range []struct {
		name string
		of   func(sizes.Report) string
	}{
		{"lines, files", func(r sizes.Report) string { return fmt.Sprintf("%d, %d", r.Lines, r.Files) }},
		{"function: median, p90, longest", func(r sizes.Report) string { return line(r.Function) }},
		{"file: median, p90, longest", func(r sizes.Report) string { return line(r.File) }},
		{"functions in 1000 lines", func(r sizes.Report) string {
			return fmt.Sprintf("%.0f", 1000*float64(r.Functions)/float64(max(r.Lines, 1)))
		}},
		{"most methods on one type", func(r sizes.Report) string { return fmt.Sprintf("%d (%s)", r.Methods, r.ManyMethods) }},
		{"most fields on one type, embedded ones counted", func(r sizes.Report) string { return fmt.Sprintf("%d (%s)", r.Fields, r.ManyFields) }},
		{"comment lines", func(r sizes.Report) string { return fmt.Sprintf("%.1f %%", 100*r.Comments) }},
		{"lines longer than 100 columns", func(r sizes.Report) string { return fmt.Sprintf("%.1f %%", 100*r.Wide) }},
	} {
		cells := []string{row.name}
		for _, r := range all {
			cells = append(cells, row.of(r))
		}
		fmt.Printf("| %s |\n", strings.Join(cells, " | "))
	}
}

func line(s sizes.Spread) string { return fmt.Sprintf("%d, %d, %d", s.Median, s.P90, s.Max) }

// module is the path of the module whose root a folder is; empty: it is none.
func module(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}
