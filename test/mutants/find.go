package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
}

// find returns all mutants of packages, in order.
func find(packages []pkg) ([]mutant, error) {
	var all []mutant
	for _, p := range packages {
		for _, name := range p.GoFiles {
			if strings.HasSuffix(name, ".gen.go") {
				continue
			}
			more, err := mutantsOf(p, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

func sum(source []byte) string { return fmt.Sprintf("%x", sha256.Sum256(source))[:16] }

// finder looks for places in a file.
type finder struct {
	files  *token.FileSet
	source []byte
	made   []mutant
}

func mutantsOf(p pkg, path string) ([]mutant, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &finder{files: token.NewFileSet(), source: source}
	tree, err := parser.ParseFile(f.files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, f.visit)
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
		m.File, m.Package, m.Sum = name, p.ImportPath, sum(source)
		m.Before, m.After = f.lines(m)
	}
	slices.SortStableFunc(f.made, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Text, b.Text)) })
	return f.made, nil
}

// others are operators and what may stand in their place: the neighbour at a boundary, and the opposite.
var others = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, o := range others[n.Op] {
			f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), o.String(), fmt.Sprintf("%s becomes %s", n.Op, o))
		}
		if n.Op == token.LAND || n.Op == token.LOR {
			f.add(n.Pos(), n.Y.Pos(), "", "the left side doesn't count")
			f.add(n.X.End(), n.End(), "", "the right side doesn't count")
		}
	case *ast.IfStmt:
		f.add(n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")", "the condition is turned round")
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.OpPos, n.OpPos+1, "", "! goes")
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
			f.add(n.Pos(), n.End(), strconv.Itoa(i+1), "a number is larger by one")
		}
	case *ast.Ident:
		if opposite := map[string]string{"true": "false", "false": "true"}[n.Name]; opposite != "" {
			f.add(n.Pos(), n.End(), opposite, n.Name+" becomes "+opposite)
		}
	case *ast.ExprStmt:
		f.add(n.Pos(), n.End(), "", "a call is left out")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.add(n.Pos(), n.End(), "", "an assignment is left out")
		}
	case *ast.IncDecStmt:
		f.add(n.Pos(), n.End(), "", n.Tok.String()+" is left out")
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			f.add(n.Pos(), n.End(), "", n.Tok.String()+" is left out")
		}
	case *ast.ImportSpec:
		return false
	}
	return true
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *finder) add(from, to token.Pos, text, what string) {
	f.made = append(f.made, mutant{Line: f.files.Position(from).Line, What: what, Start: f.offset(from), End: f.offset(to), Text: text})
}

// apply makes the change.
func (m *mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.Start], []byte(m.Text), source[m.End:])
}

// lines are the line as it is and as it becomes.
func (f *finder) lines(m *mutant) (before, after string) {
	from := strings.LastIndexByte(string(f.source[:m.Start]), '\n') + 1
	first := func(text []byte) string {
		line, _, _ := strings.Cut(string(text[from:]), "\n")
		return line
	}
	return first(f.source), first(m.apply(f.source))
}

func shuffle(all []mutant, seed uint64) {
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}
