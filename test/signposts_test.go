package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// signs is what can be named in the tree: files and folders by path and by name, packages by name,
// and what types and packages have.
type signs struct {
	paths map[string]bool
	// members are those of a type, by FOLDER and TYPE: methods, fields, and the types that it
	// embeds.
	members map[string]map[string]*member
	// packages are the folders whose packages have a name.
	packages map[string][]string
	declared map[string]map[string]bool
}

// member is what a type has.
type member struct {
	names map[string]bool
	// embeds are the types of this module that it embeds, by name alone; open: others, too, whose
	// members aren't known here.
	embeds []string
	open   bool
}

func readSigns(t *testing.T) (*signs, map[string]*ast.File, *token.FileSet) {
	t.Helper()
	s := &signs{paths: map[string]bool{}, members: map[string]map[string]*member{},
		packages: map[string][]string{}, declared: map[string]map[string]bool{}}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == ".git" || name == ".cache") {
			return fs.SkipDir
		}
		at := strings.TrimPrefix(filepath.ToSlash(file), "../")
		s.paths[at] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files, set := map[string]*ast.File{}, token.NewFileSet()
	goFiles(t, "..", func(file string) error {
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(file, "../")
		files[at] = f
		s.add(path.Dir(at), f)
		return nil
	})
	return s, files, set
}

func (s *signs) add(folder string, f *ast.File) {
	if s.declared[folder] == nil {
		s.declared[folder], s.members[folder] = map[string]bool{}, map[string]*member{}
		s.packages[f.Name.Name] = append(s.packages[f.Name.Name], folder)
	}
	of := func(name string) *member {
		m := s.members[folder][name]
		if m == nil {
			m = &member{names: map[string]bool{}}
			s.members[folder][name] = m
		}
		return m
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				s.declared[folder][d.Name.Name] = true
			} else if name := typeName(d.Recv.List[0].Type); name != "" {
				of(name).names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.declared[folder][spec.Name.Name] = true
					of(spec.Name.Name).read(spec)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						s.declared[folder][n.Name] = true
					}
				}
			}
		}
	}
}

// read takes the members of a type's declaration.
func (m *member) read(spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch x := spec.Type.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default: // an alias, or a type that is made from another
		m.embed(x)
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			m.names[n.Name] = true
		}
		if len(f.Names) == 0 {
			m.names[typeName(f.Type)] = true
			m.embed(f.Type)
		}
	}
}

func (m *member) embed(e ast.Expr) {
	if name := typeName(e); name != "" {
		m.embeds = append(m.embeds, name)
	} else {
		m.open = true
	}
}

// typeName is the name of a type without its package, pointer and parameters.
func typeName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// has reports whether a type has a member; a type of another module that it embeds may have any.
func (s *signs) has(name, of string, in []string, depth int) bool {
	known := false
	for _, folder := range in {
		m := s.members[folder][name]
		if m == nil {
			continue
		}
		known = true
		if m.names[of] || m.open || depth > 4 {
			return true
		}
		for _, e := range m.embeds {
			if s.has(e, of, s.holders(e), depth+1) {
				return true
			}
		}
	}
	return !known
}

// holders are the folders that declare a type.
func (s *signs) holders(name string) (in []string) {
	for folder, types := range s.members {
		if types[name] != nil && s.declared[folder][name] {
			in = append(in, folder)
		}
	}
	return in
}

// elsewhere are names that no file of ours has, and that comments and documents name all the same.
var elsewhere = map[string]bool{
	"core/v1alpha1/MeshConfig": true, // a type of Istio's debug API
	"core/NAME":                true, // stands for all of them
	"sdk/rest":                 true, // what an older version called sdk/idle
	"types.gen.go":             true, // what a program writes into the folder that it runs in
	"server.pem":               true, // a file, not a type's field
	"limits.instances":         true, // a setting of a type's name
	"asker.go":                 true, // asker.go.in, which another module compiles

	"BufferPool": true, // of grpc-go
	"MicroTime":  true, // of Kubernetes
}

// istios is a path in Istio's repository, which comments name as a source.
var istios = regexp.MustCompile(`^(pilot|pkg|security|tests|tools|istioctl)/`)

var (
	dotted   = regexp.MustCompile(`(^|[^\w./"-])(\w+)\.([A-Za-z]\w*)(\.[A-Za-z]\w*)?`)
	goFile   = regexp.MustCompile(`[\w./-]*\w+\.go\b`)
	treePath = regexp.MustCompile(`(^|[^\w./-])((?:core|sdk|plugins|cmd|internal|test|examples|deploy|docs)(?:/[A-Za-z0-9_.-]+)+)`)
)

// TestSignposts: each file, package, type and member that a comment names is there.
func TestSignposts(t *testing.T) {
	s, files, set := readSigns(t)
	named := 0
	for at, f := range files {
		if ast.IsGenerated(f) {
			continue
		}
		imports := map[string]string{} // folder by the name that this file gives it
		for _, i := range f.Imports {
			of := local(strings.Trim(i.Path.Value, `"`))
			name := path.Base(of)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = of
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				for n, line := range strings.Split(c.Text, "\n") {
					where := set.Position(c.Pos())
					for _, what := range s.missing(path.Dir(at), imports, line, &named) {
						t.Errorf("%s:%d names %s, which is not there", at, where.Line+n, what)
					}
				}
			}
		}
	}
	if named < 400 {
		t.Errorf("comments name %d things; are they read as they should be?", named)
	}
}

// missing returns what a line of a comment names that is not there.
func (s *signs) missing(folder string, imports map[string]string, line string, named *int) (all []string) {
	for _, m := range goFile.FindAllString(line, -1) {
		*named++
		if !s.path(folder, m) && !elsewhere[m] && !istios.MatchString(m) {
			all = append(all, m)
		}
	}
	for _, m := range treePath.FindAllStringSubmatch(line, -1) {
		*named++
		if !s.path(folder, m[2]) && !elsewhere[m[2]] {
			all = append(all, m[2])
		}
	}
	for _, m := range dotted.FindAllStringSubmatch(line, -1) {
		of, name := m[2], m[3]
		switch {
		case name == "go" || name == "md" || name == "yaml" || elsewhere[of+"."+name]:
		case s.members[folder][of] != nil && s.declared[folder][of]: // a type of this package
			*named++
			if !s.has(of, name, []string{folder}, 0) {
				all = append(all, of+"."+name)
			}
		case imports[of] != "" && s.declared[imports[of]] != nil && ast.IsExported(name): // a package that is imported here
			*named++
			if !s.declared[imports[of]][name] {
				all = append(all, of+"."+name)
			}
		case ast.IsExported(of) && len(s.holders(of)) > 0 && under(folder, "core"):
			*named++
			if !s.has(of, name, s.holders(of), 0) {
				all = append(all, of+"."+name)
			}
		}
	}
	return all
}

// path reports whether there is a path, from a folder or from one above it.
func (s *signs) path(folder, name string) bool {
	name = strings.TrimRight(name, ".-/")
	for at := folder; ; at = path.Dir(at) {
		if s.paths[path.Join(at, name)] {
			return true
		}
		if at == "." {
			break
		}
	}
	// PACKAGE.NAME
	dir, last := path.Split(name)
	pkg, what, ok := strings.Cut(last, ".")
	if !ok {
		return false
	}
	what, _, _ = strings.Cut(what, ".")
	at := dir + pkg
	return s.paths[at] && (s.declared[at] == nil || s.declared[at][what])
}

var testName = regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z]\w+`)

// TestSignpostsInDocs: each file, package and test that a document names is there.
// docs/decisions speaks of what was.
func TestSignpostsInDocs(t *testing.T) {
	s, files, _ := readSigns(t)
	tests := map[string]bool{}
	for at, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasSuffix(at, "_test.go") {
				tests[d.Name.Name] = true
			}
		}
	}
	named := 0
	for at := range s.paths {
		if !strings.HasSuffix(at, ".md") || strings.Contains(at, "testdata") || strings.Contains(at, "docs/decisions/") {
			continue
		}
		text, err := os.ReadFile(path.Join("..", at))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, m := range testName.FindAllString(line, -1) {
				if named++; !tests[m] && !s.begins(tests, m) {
					t.Errorf("%s:%d names %s, which is not there", at, n+1, m)
				}
			}
			for _, m := range treePath.FindAllStringSubmatch(line, -1) {
				if named++; !s.path(path.Dir(at), m[2]) && !elsewhere[m[2]] {
					t.Errorf("%s:%d names %s, which is not there", at, n+1, m[2])
				}
			}
		}
	}
	if named < 300 {
		t.Errorf("documents name %d things; are they read as they should be?", named)
	}
}

// begins reports whether a name begins that of a test: -run takes those.
func (s *signs) begins(tests map[string]bool, name string) bool {
	for of := range tests {
		if strings.HasPrefix(of, name) {
			return true
		}
	}
	return false
}

// camel is a word that only code has.
var camel = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*\b`)

// TestWordsOfCode: each word of code in a comment of the core, the SDK and the command is one that
// code has.
func TestWordsOfCode(t *testing.T) {
	_, files, set := readSigns(t)
	used := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				used[n.Name] = true
			case *ast.BasicLit:
				for _, w := range camel.FindAllString(n.Value, -1) {
					used[w] = true
				}
			}
			return true
		})
	}
	named := 0
	for at, f := range files {
		if ast.IsGenerated(f) || !anyUnder(at, []string{"cmd", "core", "sdk"}) {
			continue
		}
		for _, g := range f.Comments {
			for _, w := range camel.FindAllString(g.Text(), -1) {
				if named++; !used[w] && !elsewhere[w] {
					t.Errorf("%s:%d: a comment has %s, and no code does", at, set.Position(g.Pos()).Line, w)
				}
			}
		}
	}
	if named < 300 {
		t.Errorf("comments have %d words of code; are they read as they should be?", named)
	}
}

// TestFieldsInComments: the comment of a field names it, and those that share the comment, as they
// are written.
func TestFieldsInComments(t *testing.T) {
	_, files, set := readSigns(t)
	for _, f := range files {
		if ast.IsGenerated(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, name := range misspelt(s) {
					t.Errorf("%s: the comment of a field calls it as no field is called: %s", set.Position(s.Pos()), name)
				}
			}
			return true
		})
	}
}

// misspelt are the fields that a comment of theirs begins a sentence with in lower case.
func misspelt(s *ast.StructType) (all []string) {
	doc := ""
	for _, field := range s.Fields.List {
		if field.Doc != nil {
			doc = strings.ReplaceAll(field.Doc.Text(), "\n", " ")
		}
		for _, n := range field.Names {
			small := strings.ToLower(n.Name[:1]) + n.Name[1:]
			says := regexp.MustCompile(`(^|[.;] )` + small + `(:| (is|are|has|have|those|wait)\b)`)
			if n.IsExported() && says.MatchString(doc) && !regexp.MustCompile(`\b`+n.Name+`\b`).MatchString(doc) {
				all = append(all, small)
			}
		}
	}
	return all
}

// TestSignpostsAreSeen: the checks see what they are to see.
func TestSignpostsAreSeen(t *testing.T) {
	s := &signs{
		paths: map[string]bool{"core/a": true, "core/a/file.go": true}, members: map[string]map[string]*member{},
		packages: map[string][]string{}, declared: map[string]map[string]bool{},
	}
	f, err := parser.ParseFile(token.NewFileSet(), "file.go",
		"package a\ntype T struct{ In; soon int }\ntype In struct{ late int }\nfunc (*T) Do() {}\nfunc New() {}\n",
		0)
	if err != nil {
		t.Fatal(err)
	}
	s.add("core/a", f)
	imports := map[string]string{"a": "core/a"}
	for line, want := range map[string]string{
		"T.Do, T.soon and T.late; file.go of core/a, core/a.T, core/a/file.go": "",
		"T.done, T.Did":                 "T.done T.Did",
		"gone.go, core/b, core/a.U":     "gone.go core/b core/a.U",
		"Unknown.Field, x.y, e.g. this": "",
	} {
		named := 0
		if got := strings.Join(s.missing("core/a", imports, line, &named), " "); got != want {
			t.Errorf("of %q %q is missing, want %q", line, got, want)
		}
	}
	fields, err := parser.ParseFile(token.NewFileSet(), "f.go",
		"package a\ntype T struct {\n\t// Forced take part; soon: at once. Undo is a number.\n\tForced, Soon bool\n\tUndo int\n}\n",
		parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(fields, func(n ast.Node) bool {
		if of, ok := n.(*ast.StructType); ok && strings.Join(misspelt(of), " ") != "soon" {
			t.Errorf("of fields %v are misspelt, want soon", misspelt(of))
		}
		return true
	})
	named := 0
	if got := s.missing("core/b", imports, "a.New, a.Old", &named); len(got) != 1 || got[0] != "a.Old" || named != 2 {
		t.Errorf("of a package %v is missing, %d named", got, named)
	}
}
