// Command measure prints how long functions and files are and how large types are, of one or more
// folders beside each other, with the goals of this one: `go run ./test/measure . ../another`.
// docs/decisions/halls.md has what it said. Nothing fails by it.
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
	fmt.Printf("| | %s | goal |\n|---%s|\n", strings.Join(os.Args[1:], " | "), strings.Repeat("|---", len(all)+1))
	for _, row := range []struct {
		name, goal string
		of         func(sizes.Report) string
	}{
		{"lines, files", "fewer for the same", func(r sizes.Report) string { return fmt.Sprintf("%d, %d", r.Lines, r.Files) }},
		{"function: median, p90, longest", "longest 60", func(r sizes.Report) string { return line(r.Function) }},
		{"file: median, p90, longest", "", func(r sizes.Report) string { return line(r.File) }},
		{"functions in 1000 lines", "", func(r sizes.Report) string {
			return fmt.Sprintf("%.0f", 1000*float64(r.Functions)/float64(max(r.Lines, 1)))
		}},
		{"most methods on one type", "", func(r sizes.Report) string { return fmt.Sprintf("%d (%s)", r.Methods, r.ManyMethods) }},
		{"most fields on one type, embedded ones counted", "", func(r sizes.Report) string { return fmt.Sprintf("%d (%s)", r.Fields, r.ManyFields) }},
		{"comment lines", "15 %", func(r sizes.Report) string { return fmt.Sprintf("%.1f %%", 100*r.Comments) }},
		{"lines longer than 100 columns", "1.5 %", func(r sizes.Report) string { return fmt.Sprintf("%.1f %%", 100*r.Wide) }},
		{"lines longer than 160 columns", "0", func(r sizes.Report) string { return fmt.Sprint(r.Widest) }},
		{"exported functions without a comment", "20", func(r sizes.Report) string { return fmt.Sprint(r.Bare) }},
		{"packages of more than 4000 lines", "none", func(r sizes.Report) string { return strings.Join(r.Large, ", ") }},
		{"types with more than 30 methods or 16 fields", "one thing each", func(r sizes.Report) string { return fmt.Sprint(len(r.LargeTypes)) }},
	} {
		cells := []string{row.name}
		for _, r := range all {
			cells = append(cells, row.of(r))
		}
		fmt.Printf("| %s | %s |\n", strings.Join(cells, " | "), row.goal)
	}
	for i, r := range all {
		fmt.Printf("\nTypes of %s with more than 30 methods or 16 fields (methods, fields): %s\n", os.Args[1+i], strings.Join(r.LargeTypes, ", "))
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
