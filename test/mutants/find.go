package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is one change of one file: the bytes from Start to End become Text.
type mutant struct {
	File       string // relative to the module's root
	Package    string // its import path
	Line       int
	What       string
	Start, End int
	Text       string
	// Before and After are the line, or the first of them.
	Before, After string
	// Sum is the file's, by which results go stale.
	Sum string

	// from and to are where the node begins and ends that a switch stands around, form is how.
	from, to int
	form     form
	// typ is a number's type, as the file calls it.
	typ string
	// number is the switch's, from 1 up.
	number int
	// key is the mutant's place in the order.
	key string
}

// form says how a mutant becomes a switch between what is written and the change.
type form int

const (
	alone     form = iota // not at all: it is built by itself
	condition             // (on && (changed) || !on && (written))
	arithmetic
	number
	statement // if !on { written }
	simple    // the same as a call, where only a simple statement may stand
)

// find returns all mutants of folders, in an order that seed fixes and that a change elsewhere
// leaves as it is.
func find(folders []string, seed uint64) ([]mutant, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, patterns(folders)...)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, p := range loaded {
		for _, err := range p.Errors {
			return nil, err
		}
		if p.Imports["testing"] != nil {
			continue // helpers of tests
		}
		for i, name := range p.CompiledGoFiles {
			if strings.HasSuffix(name, ".gen.go") || !strings.HasSuffix(name, ".go") {
				continue
			}
			more, err := mutantsOf(p, name, p.Syntax[i])
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	order(all, seed)
	return all, nil
}

func patterns(folders []string) []string {
	var out []string
	for _, f := range folders {
		out = append(out, "./"+f+"/...")
	}
	return out
}

func sum(source []byte) string { return fmt.Sprintf("%x", sha256.Sum256(source))[:16] }

// order puts mutants in the order of a hash of what they do, so that a sample changes only where
// the product does.
func order(all []mutant, seed uint64) {
	slices.SortStableFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Text, b.Text))
	})
	seen := map[string]int{}
	for i := range all {
		m := &all[i]
		what := fmt.Sprintf("%d\n%s\n%s\n%s\n%s", seed, m.File, m.What, m.Before, m.After)
		seen[what]++
		m.key = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\n%d", what, seen[what])))
	}
	slices.SortFunc(all, func(a, b mutant) int { return cmp.Compare(a.key, b.key) })
}

// finder looks for places in a file.
type finder struct {
	pkg    *packages.Package
	tree   *ast.File
	source []byte
	stack  []ast.Node // from the file to the node that is visited
	made   []mutant
}

func mutantsOf(p *packages.Package, path string, tree *ast.File) ([]mutant, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &finder{pkg: p, tree: tree, source: source}
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		if !f.visit(n) {
			return false
		}
		f.stack = append(f.stack, n)
		return true
	})
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(wd, path)
	if err != nil {
		return nil, err
	}
	for i := range f.made {
		m := &f.made[i]
		m.File, m.Package, m.Sum = name, p.PkgPath, sum(source)
		m.Before, m.After = f.lines(m)
	}
	return f.made, nil
}

// others are operators and what may stand in their place: the neighbour at a boundary, and the
// opposite.
var others = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.add(n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")", "the condition is turned round", n.Cond, condition)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.OpPos, n.OpPos+1, "", "! goes", n, condition)
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
			m := f.add(n.Pos(), n.End(), strconv.Itoa(i+1), "a number is larger by one", n, number)
			if m.typ = f.nameOf(f.pkg.TypesInfo.TypeOf(n)); m.typ == "" {
				m.form = alone
			}
		}
	case *ast.Ident:
		if opposite := map[string]string{"true": "false", "false": "true"}[n.Name]; opposite != "" {
			f.add(n.Pos(), n.End(), opposite, n.Name+" becomes "+opposite, n, condition)
		}
	case *ast.ExprStmt:
		f.add(n.Pos(), n.End(), "", "a call is left out", n, f.leftOut(n))
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.add(n.Pos(), n.End(), "", "an assignment is left out", n, f.leftOut(n))
		}
	case *ast.IncDecStmt:
		f.add(n.Pos(), n.End(), "", n.Tok.String()+" is left out", n, f.leftOut(n))
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			f.add(n.Pos(), n.End(), "", n.Tok.String()+" is left out", n, f.leftOut(n))
		}
	case *ast.ImportSpec:
		return false
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	computed := f.pkg.TypesInfo.Types[n]
	how := condition
	if b, ok := computed.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsNumeric != 0 {
		how = arithmetic
	} else if b.Info()&types.IsString != 0 {
		return // what can only be added
	}
	if computed.Value != nil {
		how = alone
	}
	for _, o := range others[n.Op] {
		f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), o.String(), fmt.Sprintf("%s becomes %s", n.Op, o), n, how)
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add(n.Pos(), n.Y.Pos(), "", "the left side doesn't count", n, condition)
		f.add(n.X.End(), n.End(), "", "the right side doesn't count", n, condition)
	}
}

// leftOut says how a statement that isn't visited yet can be left out.
func (f *finder) leftOut(n ast.Node) form {
	switch parent := f.stack[len(f.stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return statement
	case *ast.CommClause:
		if parent.Comm != n {
			return statement
		}
	case *ast.IfStmt, *ast.ForStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
		return simple
	}
	return alone
}

// nameOf returns how the file calls a type, "" if it has no name for it.
func (f *finder) nameOf(t types.Type) string {
	if t == nil {
		return ""
	}
	named := true
	name := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == f.pkg.Types {
			return ""
		}
		for _, spec := range f.tree.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		named = false
		return p.Name()
	})
	if !named {
		return ""
	}
	return name
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.pkg.Fset.Position(p).Offset }

func (f *finder) add(from, to token.Pos, text, what string, around ast.Node, how form) *mutant {
	f.made = append(f.made, mutant{
		Line: f.pkg.Fset.Position(from).Line, What: what, Start: f.offset(from), End: f.offset(to), Text: text,
		from: f.offset(around.Pos()), to: f.offset(around.End()), form: how,
	})
	return &f.made[len(f.made)-1]
}

// read returns the file, which must be as it was when the mutant was found.
func (m *mutant) read() ([]byte, error) {
	source, err := os.ReadFile(m.File)
	if err == nil && sum(source) != m.Sum {
		err = fmt.Errorf("%s has changed meanwhile: begin again", m.File)
	}
	return source, err
}

// apply makes the change.
func (m *mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.Start], []byte(m.Text), source[m.End:])
}

// lines are the line as it is and as it becomes.
func (f *finder) lines(m *mutant) (before, after string) {
	from := bytes.LastIndexByte(f.source[:m.Start], '\n') + 1
	first := func(text []byte) string {
		line, _, _ := strings.Cut(string(text[from:]), "\n")
		return line
	}
	return first(f.source), first(m.apply(f.source))
}
