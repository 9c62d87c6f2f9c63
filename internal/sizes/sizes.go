// Package sizes measures Go source: how long functions and files are, how large types are, how much
// of it is comments. Generated files and tests don't count.
package sizes

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a Go file.
type File struct {
	*ast.File
	// Lines are its lines, Functions how many lines each of its functions has.
	Lines, Functions []int
	// Comments are the lines that have nothing but a comment, Wide those of more than 100 columns
	// (a tab counts four), Widest those of more than 160.
	Comments, Wide, Widest int
	// Bare are the exported functions and methods without a comment.
	Bare int
}

// Tree is Go files by their folder.
type Tree map[string][]*File

// wide is how many columns a line may have.
const wide, widest, tab = 100, 160, 4

// Read reads the files below a folder, but those of testdata and of folders whose names begin with
// a dot.
func Read(root string) (Tree, error) {
	all := Tree{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name != "." && name != ".." && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := Parse(file, text)
		if err != nil || ast.IsGenerated(f.File) {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		all[filepath.ToSlash(folder)] = append(all[filepath.ToSlash(folder)], f)
		return err
	})
	return all, err
}

// Parse reads a file.
func Parse(name string, text []byte) (*File, error) {
	set := token.NewFileSet()
	is, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &File{File: is}
	for line := range bytes.Lines(text) {
		columns := 0
		for _, r := range string(bytes.TrimRight(line, "\r\n")) {
			if columns++; r == '\t' {
				columns += tab - 1
			}
		}
		if f.Lines = append(f.Lines, columns); columns > wide {
			f.Wide++
		}
		if columns > widest {
			f.Widest++
		}
	}
	of := func(n ast.Node) int { return set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1 }
	for _, d := range is.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			f.Functions = append(f.Functions, of(d))
			if d.Doc == nil && d.Name.IsExported() && is.Name.Name != "main" && exported(d) {
				f.Bare++
			}
		}
	}
	for _, c := range is.Comments {
		line := set.Position(c.Pos())
		if before := bytes.Split(text, []byte("\n"))[line.Line-1][:line.Column-1]; len(bytes.TrimSpace(before)) == 0 {
			f.Comments += of(c)
		}
	}
	return f, nil
}

// Type is how large a type is. Fields are those of a struct, with those of structs that it embeds.
type Type struct{ Methods, Fields int }

// Types returns the types of all folders, by FOLDER.NAME; module is the path that imports of others
// begin with. Files for other systems have methods of their own; the same one counts once.
func (t Tree) Types(module string) map[string]*Type {
	all := map[string]*Type{}
	of := func(name string) *Type {
		if all[name] == nil {
			all[name] = &Type{}
		}
		return all[name]
	}
	known := t.structs(module)
	seen := map[string]bool{}
	for folder, files := range t {
		for _, f := range files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if name := receiver(d); name != "" && !seen[folder+"."+name+"."+d.Name.Name] {
						seen[folder+"."+name+"."+d.Name.Name] = true
						of(folder+"."+name).Methods++
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if s, ok := s.(*ast.TypeSpec); ok {
							is := of(folder + "." + s.Name.Name)
							is.Fields = max(is.Fields, known.fields(folder, f.File, s.Type))
						}
					}
				}
			}
		}
	}
	return all
}

// exported reports whether a function is no method, or one of an exported type.
func exported(d *ast.FuncDecl) bool { return d.Recv == nil || ast.IsExported(receiver(d)) }

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// structs are the structs of a module by FOLDER.NAME, and the file that each is in.
type structs struct {
	module string
	all    map[string]declared
}

type declared struct {
	file *ast.File
	of   *ast.StructType
}

func (t Tree) structs(module string) structs {
	out := structs{module, map[string]declared{}}
	for folder, files := range t {
		for _, f := range files {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if ts, ok := n.(*ast.TypeSpec); ok {
					if s, ok := ts.Type.(*ast.StructType); ok {
						out.all[folder+"."+ts.Name.Name] = declared{f.File, s}
					}
				}
				return true
			})
		}
	}
	return out
}

// fields counts those of a type in a folder's file, where it is a struct.
func (s structs) fields(folder string, f *ast.File, e ast.Expr) (n int) {
	is, ok := e.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, field := range is.Fields.List {
		if len(field.Names) > 0 {
			n += len(field.Names)
			continue
		}
		in, name := s.embedded(folder, f, field.Type)
		if of, ok := s.all[in+"."+name]; ok {
			n += s.fields(in, of.file, of.of)
		} else {
			n++
		}
	}
	return n
}

// embedded returns the folder and the name of an embedded type.
func (s structs) embedded(folder string, f *ast.File, e ast.Expr) (in, name string) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	switch x := e.(type) {
	case *ast.Ident:
		return folder, x.Name
	case *ast.SelectorExpr:
		for _, i := range f.Imports {
			of := strings.Trim(i.Path.Value, `"`)
			if pkg, ok := x.X.(*ast.Ident); ok && (i.Name != nil && i.Name.Name == pkg.Name || i.Name == nil && path.Base(of) == pkg.Name) {
				return strings.TrimPrefix(of, s.module+"/"), x.Sel.Name
			}
		}
	}
	return "", ""
}

// Report are the measurements of a tree.
type Report struct {
	Lines, Functions, Files int
	// Function and File are how many lines half of them, nine tenths, and all have at most.
	Function, File Spread
	// Methods and Fields are those of the type that has most, which ManyMethods and ManyFields
	// name.
	Methods, Fields         int
	ManyMethods, ManyFields string
	// Comments and Wide are shares of all lines.
	Comments, Wide float64
	// Widest are lines of more than 160 columns, Bare exported functions without a comment.
	Widest, Bare int
	// Large are folders with more than 4000 lines, LargeTypes types with more than 30 methods or
	// 16 fields; each with its numbers.
	Large, LargeTypes []string
}

// From where on packages and types are called large in a report. Nothing refuses them.
const (
	manyLines   = 4000
	manyMethods = 30
	manyFields  = 16
)

// Spread says how numbers are spread.
type Spread struct{ Median, P90, Max int }

func spread(numbers []int) Spread {
	if len(numbers) == 0 {
		return Spread{}
	}
	slices.Sort(numbers)
	return Spread{numbers[len(numbers)/2], numbers[len(numbers)*9/10], numbers[len(numbers)-1]}
}

// Report measures the tree.
func (t Tree) Report(module string) Report {
	var out Report
	var functions, files []int
	comments, columns := 0, 0
	for name, folder := range t {
		lines := 0
		for _, f := range folder {
			lines += len(f.Lines)
			out.Widest, out.Bare = out.Widest+f.Widest, out.Bare+f.Bare
			functions, files = append(functions, f.Functions...), append(files, len(f.Lines))
			out.Lines, comments, columns = out.Lines+len(f.Lines), comments+f.Comments, columns+f.Wide
		}
		if lines > manyLines {
			out.Large = append(out.Large, fmt.Sprintf("%s (%d)", name, lines))
		}
	}
	out.Functions, out.Files, out.Function, out.File = len(functions), len(files), spread(functions), spread(files)
	if out.Lines > 0 {
		out.Comments, out.Wide = float64(comments)/float64(out.Lines), float64(columns)/float64(out.Lines)
	}
	types := t.Types(module)
	for name, is := range types {
		if is.Methods > out.Methods || is.Methods == out.Methods && name < out.ManyMethods {
			out.Methods, out.ManyMethods = is.Methods, name
		}
		if is.Methods > manyMethods || is.Fields > manyFields {
			out.LargeTypes = append(out.LargeTypes, fmt.Sprintf("%s (%d, %d)", name, is.Methods, is.Fields))
		}
		if is.Fields > out.Fields || is.Fields == out.Fields && name < out.ManyFields {
			out.Fields, out.ManyFields = is.Fields, name
		}
	}
	slices.Sort(out.Large)
	slices.Sort(out.LargeTypes)
	return out
}
