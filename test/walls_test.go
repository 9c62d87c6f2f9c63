package test

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	gopackages "golang.org/x/tools/go/packages"
)

const statePackage = module + "core/control/internal/state"

// TestWalls: what the core knows is changed by methods of its own types alone.
func TestWalls(t *testing.T) {
	loaded, err := gopackages.Load(&gopackages.Config{
		Mode: gopackages.NeedName | gopackages.NeedSyntax | gopackages.NeedTypes | gopackages.NeedTypesInfo | gopackages.NeedImports,
		Dir:  "..",
	}, "./core/control/...")
	if err != nil || gopackages.PrintErrors(loaded) > 0 {
		t.Fatalf("core/control can't be read: %v", err)
	}
	found := map[string]int{}
	for _, p := range loaded {
		if p.PkgPath == statePackage {
			continue
		}
		for _, f := range p.Syntax {
			for _, field := range assigned(f, p.TypesInfo, statePackage) {
				found[field]++
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s is assigned from outside core/control/internal/state in %d places: give the type a method", field, found[field])
	}
}

// assigned returns TYPE.FIELD for each place in a file that changes a field of a package's struct:
// assignments, ++ and --, entries of maps and slices, and delete and clear.
func assigned(f *ast.File, info *types.Info, of string) (all []string) {
	note := func(e ast.Expr) {
		for {
			switch x := ast.Unparen(e).(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				if name := fieldOf(info.Selections[x], of); name != "" {
					all = append(all, name)
				}
			}
			return
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					note(e)
				}
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
				note(n.Args[0])
			}
		}
		return true
	})
	return all
}

// fieldOf names the field that a selection is of, if the package declares it.
func fieldOf(s *types.Selection, of string) string {
	if s == nil || s.Kind() != types.FieldVal || s.Obj().Pkg() == nil || s.Obj().Pkg().Path() != of {
		return ""
	}
	recv := s.Recv()
	if p, ok := recv.Underlying().(*types.Pointer); ok {
		recv = p.Elem()
	}
	name := recv.String()
	return name[strings.LastIndex(name, ".")+1:] + "." + s.Obj().Name()
}
