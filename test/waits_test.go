package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sleeps are files with tests, or of programs for them, that sleep outside of a loop that looks
// again and of a bubble of testing/synctest, and why.
var sleeps = map[string]string{
	"core/host/process/process_test.go": "a reader that is slow",
	"test/bench/server.go":              "profiles of other processes begin, which nobody can see",
	"test/churn/churn_test.go":          "memory is measured after a time of quiet",
	"test/churn/cluster_test.go":        "the pace of changes",
	"test/churn/gateways_test.go":       "the pace of edits",
	"test/e2e/soak_test.go":             "a wait that looks less often than others, as looking costs the core something",
}

// TestWaits: tests wait for what they want to see, and don't hope that it has come after a while;
// and none is skipped without a word (test/kit/need).
func TestWaits(t *testing.T) {
	files := map[string]*ast.File{}
	bubbles := map[string]bool{} // folders with tests of testing/synctest, whose time is not that of others
	goFiles(t, "..", func(path string) error {
		name := strings.TrimPrefix(path, "../")
		if !strings.HasSuffix(name, "_test.go") && !under(name, "test") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files[name] = f
		if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }) {
			bubbles[filepath.Dir(name)] = true
		}
		return nil
	})
	if len(files) < 100 || len(bubbles) == 0 {
		t.Fatal(len(files), len(bubbles))
	}
	hopes := map[string]bool{}
	for name, f := range files {
		hoping, skips := waits(f)
		if skips && !anyUnder(name, []string{"test/kit/need", "test/waits_test.go"}) {
			t.Errorf("%s skips a test by itself: use test/kit/need, which says so to whoever runs all", name)
		}
		if hoping && !bubbles[filepath.Dir(name)] {
			hopes[name] = true
			if sleeps[name] == "" {
				t.Errorf("%s sleeps: wait for what is to be seen (test/kit/wait), or say in `sleeps` why time must pass", name)
			}
		}
	}
	for name := range sleeps {
		if !hopes[name] {
			t.Errorf("%s sleeps no more: take it off the list", name)
		}
	}
}

// waits reports whether a file sleeps outside of a loop, and whether it skips tests.
func waits(f *ast.File) (hopes, skips bool) {
	var path []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selected, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := selected.X.(*ast.Ident)
		switch {
		case !ok:
		case of.Name == "time" && selected.Sel.Name == "Sleep":
			hopes = hopes || !inLoop(path)
		case slices.Contains([]string{"t", "b", "f", "tb"}, of.Name):
			skips = skips || slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selected.Sel.Name)
		}
		return true
	})
	return hopes, skips
}

// inLoop reports whether the last of nested nodes is in a loop of its own function.
func inLoop(path []ast.Node) bool {
	for _, n := range slices.Backward(path) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.FuncLit, *ast.FuncDecl:
			return false
		}
	}
	return false
}

func TestWaitsAreSeen(t *testing.T) {
	for _, c := range []struct {
		body         string
		hopes, skips bool
	}{
		{`time.Sleep(1)`, true, false},
		{`for !done() { time.Sleep(1) }`, false, false},
		{`for ; ; time.Sleep(1) { }`, false, false},
		{`for range 3 { func() { time.Sleep(1) }() }`, true, false},
		{`t.Skip("why")`, false, true},
		{`b.Skipf("why")`, false, true},
		{`need.Missing(t, "it")`, false, false},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc f() { "+c.body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if hopes, skips := waits(f); hopes != c.hopes || skips != c.skips {
			t.Errorf("%s: %v %v", c.body, hopes, skips)
		}
	}
}
