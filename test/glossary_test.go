package test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/coxswain-mesh/coxswain/internal/sizes"
)

// glossaryName is a name in docs/glossary.md: a folder, and what it declares.
var glossaryName = regexp.MustCompile("`((?:core|sdk|plugins|cmd|internal)(?:/[a-z0-9-]+)*)((?:\\.[A-Z]\\w*)*)`")

// TestGlossary: each name in docs/glossary.md is there, and each package has one.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := sizes.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for folder, files := range tree {
		for _, f := range files {
			for _, name := range declarations(f.File) {
				declared[folder+"."+name] = true
			}
		}
	}
	named := map[string]bool{}
	for _, m := range glossaryName.FindAllStringSubmatch(string(text), -1) {
		_, err := os.Stat(filepath.Join("..", m[1]))
		if named[m[1]] = true; err != nil || m[2] != "" && !declared[m[1]+m[2]] {
			t.Errorf("docs/glossary.md names %s%s, which is not there", m[1], m[2])
		}
	}
	if len(named) < 100 {
		t.Errorf("docs/glossary.md names %d packages; is it read as it should be?", len(named))
	}
	for folder, files := range tree {
		if glossaryHas(folder) && files[0].Name.Name != "main" && !named[folder] {
			t.Errorf("docs/glossary.md lacks %s: say what its idea is, and what others call that", folder)
		}
	}
}

// glossaryHas reports whether the glossary is to have a package: a plugin's own are called as the
// plugin, but those of generator/istio have ideas of their own.
func glossaryHas(folder string) bool {
	return anyUnder(folder, []string{"core", "sdk", "plugins"}) &&
		(plugin(folder) == "" || under(folder, "plugins/generator/istio") || folder == "plugins/controller/ca/authority")
}

// declarations are the names that a file declares: NAME, and TYPE.METHOD.
func declarations(f *ast.File) (all []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiverOf(d.Recv.List[0].Type) + "." + name
			}
			all = append(all, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					all = append(all, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						all = append(all, n.Name)
					}
				}
			}
		}
	}
	return all
}

// receiverOf is the name of a method's type.
func receiverOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverOf(e.X)
	case *ast.IndexExpr:
		return receiverOf(e.X)
	case *ast.IndexListExpr:
		return receiverOf(e.X)
	}
	return ""
}
