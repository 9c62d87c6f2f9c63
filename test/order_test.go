package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/internal/sizes"
)

// TestNoJoinedOrder: nothing is ordered by a string that was joined of several: web-canary would
// come before web, as - comes before what joins them.
func TestNoJoinedOrder(t *testing.T) {
	tree, err := sizes.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for folder, files := range tree {
		for _, f := range files {
			if strings.HasSuffix(f.Name.Name, "_test") {
				continue
			}
			looked++
			ast.Inspect(f.File, func(n ast.Node) bool {
				if joinedOrder(n) {
					t.Errorf("%s, package %s, orders by a joined string: compare its parts, one after the other (cmp.Or)", folder, f.Name.Name)
				}
				return true
			})
		}
	}
	if looked < 500 {
		t.Errorf("%d files are looked at", looked)
	}
}

// joinedOrder reports whether a comparison is one of a sum, or of strings that are joined.
func joinedOrder(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		of, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || of.Sel.Name != "Compare" {
			return false
		}
		if in, ok := of.X.(*ast.Ident); !ok || in.Name != "cmp" && in.Name != "strings" {
			return false
		}
		for _, a := range n.Args {
			if sum, ok := a.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
				return true
			}
		}
	case *ast.BinaryExpr:
		return n.Op == token.LSS && (joinsText(n.X) || joinsText(n.Y))
	}
	return false
}

// joinsText reports whether an expression is a sum with a text in it.
func joinsText(e ast.Expr) bool {
	sum, ok := e.(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return false
	}
	for _, side := range []ast.Expr{sum.X, sum.Y} {
		if text, ok := side.(*ast.BasicLit); ok && text.Kind == token.STRING || joinsText(side) {
			return true
		}
	}
	return false
}

// TestJoinedOrderIsSeen: the test above sees what it is for.
func TestJoinedOrderIsSeen(t *testing.T) {
	for text, want := range map[string]bool{
		`cmp.Compare(a.Name+"."+a.Namespace, b.Name+"."+b.Namespace)`: true, `strings.Compare(a.A+a.B, b.A+b.B)`: true,
		`a.Name+"/"+a.Of < b.Name+"/"+b.Of`: true, `a.Count+1 < b.Count`: false, `cmp.Compare(a.Name, b.Name)`: false,
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if joinedOrder(e) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}
