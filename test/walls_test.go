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

// TestWalls: what the core knows is changed by its own methods. The list has the fields that other
// packages assign still, and in how many places; a number may only become smaller.
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
		if found[field] > open[field] {
			t.Errorf("%s is assigned from outside core/control/internal/state in %d places, want at most %d: give the type a method", field, found[field], open[field])
		}
	}
	for _, field := range slices.Sorted(maps.Keys(open)) {
		if found[field] < open[field] {
			t.Errorf("%s is assigned in %d places only: say so in this list", field, found[field])
		}
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

// open are the fields that are assigned from outside.
var open = map[string]int{
	"Absence.After":       1,
	"Connection.Attached": 4,
	"Connection.Caller":   1,
	"Connection.Outcomes": 2,
	"Connection.Seen":     2,
	"Connection.Subs":     2,
	"Connections.All":     1,
	"Course.Closed":       1,
	"Course.Flight":       2,
	"Course.Moved":        1,
	"Course.Served":       1,
	"Course.Started":      1,
	"Expected.Optional":   1,
	"Expected.Order":      2,
	"Held.Difference":     1,
	"Held.Rows":           1,
	"Instances.Changed":   1,
	"Instances.Gone":      1,
	"Instances.Tables":    1,
	"Journal.Finished":    1,
	"Journal.Off":         1,
	"Journal.Shown":       1,
	"Maker.Ops":           2,
	"Maker.OvertakenOps":  2,
	"Maker.Overtaking":    2,
	"Outcome.Acked":       1,
	"Outcome.First":       1,
	"Outcome.Has":         1,
	"Outcome.Refused":     3,
	"Outcome.Revision":    1,
	"Plugin.Away":         6,
	"Plugin.Expected":     1,
	"Plugin.Late":         2,
	"Plugin.Level":        2,
	"Plugin.Patcher":      2,
	"Plugin.Ready":        3,
	"Plugin.Session":      4,
	"Progress.Busy":       4,
	"Progress.BusyLost":   1,
	"Progress.Done":       2,
	"Progress.Sent":       1,
	"Rival.Made":          2,
	"Roster.Plugins":      5,
	"Roster.Rivals":       7,
	"Roster.Rules":        5,
	"Session.Out":         1,
	"Session.Shadow":      5,
	"Sleep.Asked":         1,
	"Sleep.Asleep":        3,
	"Sleep.Roused":        3,
	"Source.Candidate":    4,
	"Source.Lost":         3,
	"Source.LostAt":       1,
	"Source.Staged":       4,
	"Source.Synced":       3,
	"Watch.Answered":      1,
	"Watch.Lost":          1,
	"Watch.Needed":        1,
	"Watch.Pinged":        3,
	"Watch.Progress":      1,
	"Watch.Silent":        2,
}
