package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSequential: what the Makefile tests without the race detector is one goroutine: the packages,
// their tests, and what of this module they import.
func TestSequential(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^SEQUENTIAL := (.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no SEQUENTIAL")
	}
	named := strings.Fields(string(line[1]))
	// The package of a test has files of tests among its own; its main function's is elsewhere.
	const files = `{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.GoFiles}} {{.}}{{end}}{{end}}{{end}}`
	cmd := exec.Command("go", append([]string{"list", "-deps", "-test", "-f", files}, named...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if name := strings.Fields(line); len(name) > 1 {
			for _, file := range name[1:] {
				if !filepath.IsAbs(file) {
					seen[filepath.Join(name[0], file)] = true
				}
			}
		}
	}
	if len(seen) < 20 {
		t.Fatalf("%d files are seen of %v", len(seen), named)
	}
	for path := range seen {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if why := concurrent(f); why != "" {
			t.Errorf("%s has %s: take what needs it off the Makefile's SEQUENTIAL", path, why)
		}
	}
}

// concurrent returns what of a file may be done beside something else; empty: nothing.
func concurrent(f *ast.File) (what string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a goroutine"
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "Parallel" || s.Sel.Name == "AfterFunc") {
				what = fmt.Sprintf("a call of %s", s.Sel.Name)
			}
		}
		return what == ""
	})
	return what
}
