package test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/internal/sizes"
)

// machines are pure: events and the time go in, actions come out.
var machines = []string{
	"core/caller", "core/control/internal/feed", "core/control/internal/members",
	"core/control/internal/middle", "core/control/internal/patch",
	"core/control/internal/pipeline", "core/control/internal/rollout", "core/control/internal/serving",
	"core/control/internal/stage", "core/control/internal/state", "core/control/internal/status",
	"core/control/internal/store", "core/control/internal/trial", "core/deadline",
	"core/environment", "core/guard", "core/placement", "core/revision",
}

// clocks are what a machine may not call.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
	"sync": {"Mutex", "RWMutex", "WaitGroup", "Cond"},
}

// sources are the Go files that people write and that are no tests, by folder.
func sources(t *testing.T) sizes.Tree {
	t.Helper()
	all, err := sizes.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMachinesHaveNoClock: whoever drives a machine says what time it is.
func TestMachinesHaveNoClock(t *testing.T) {
	all := sources(t)
	for _, folder := range machines {
		if len(all[folder]) == 0 {
			t.Errorf("%s has no files", folder)
		}
		for _, f := range all[folder] {
			for _, what := range impure(f.File) {
				t.Errorf("%s: a machine has %s", folder, what)
			}
		}
	}
}

// impure returns what of a file no machine may have.
func impure(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(clocks[x.Name], n.Sel.Name) {
				found = append(found, fmt.Sprintf("%s.%s", x.Name, n.Sel.Name))
			}
		}
		return true
	})
	return found
}

// TestSizesAreSeen: the checks see what they are to see.
func TestSizesAreSeen(t *testing.T) {
	f, err := sizes.Parse("x.go", []byte(`package x
import ("sync"; "time")
// T is one.
type T[S any] struct { a, b int; *inner; mu sync.Mutex }
type inner struct { c, d, e int } // Its fields are T's.
func (t *T[S]) m() { go t.n(); time.Sleep(1) }
func (T[S]) n() {
}
func (T[S]) n() {}
`))
	if err != nil {
		t.Fatal(err)
	}
	if is := (sizes.Tree{"x": {f}}).Types("")["x.T"]; *is != (sizes.Type{Methods: 2, Fields: 6}) {
		t.Errorf("T has %+v", *is)
	}
	if r := (sizes.Tree{"x": {f}}).Report(""); r.Bare != 0 || r.Widest != 0 || len(r.Large)+len(r.LargeTypes) != 0 {
		t.Errorf("it is large: %+v", r)
	}
	if !slices.Equal(f.Functions, []int{1, 2, 1}) || len(f.Lines) != 9 || f.Comments != 1 || f.Wide != 0 {
		t.Errorf("functions have %v lines, the file %d, %d of them comments, %d wide", f.Functions, len(f.Lines), f.Comments, f.Wide)
	}
	if got := strings.Join(impure(f.File), ", "); got != "sync.Mutex, a goroutine, time.Sleep" {
		t.Errorf("it has %s", got)
	}
}
