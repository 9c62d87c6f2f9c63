package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// method is what the comment of core/control/internal/middle calls a step: TYPE.METHOD.
var method = regexp.MustCompile(`\b[A-Z]\w*\.[A-Za-z]\w*\b`)

// TestLives: each step that the comment of core/control/internal/middle names, in the lives of a
// plugin, a row, a placement and a request, is a method of a type in the core.
func TestLives(t *testing.T) {
	there := map[string]bool{}
	goFiles(t, "../core", func(file string) error {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if name, ok := of.(*ast.Ident); ok {
				there[name.Name+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	text, err := os.ReadFile("../core/control/internal/middle/middle.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(text), "\npackage middle\n")
	steps := method.FindAllString(doc, -1)
	if len(steps) < 15 {
		t.Errorf("the comment names %d steps only: %v", len(steps), steps)
	}
	for _, step := range steps {
		if !there[step] {
			t.Errorf("%s is no method in the core", step)
		}
	}
}
