package istio

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"testing"
)

// TestGuideNamesWhatThereIs: the files and functions that docs/guides/istio-feature.md names exist,
// each function in its file.
func TestGuideNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/istio-feature.md")
	if err != nil {
		t.Fatal(err)
	}
	// a file, and behind it, in a table or in a sentence, a function
	named := regexp.MustCompile("`([a-z_/]+\\.go)`(?: \\| |, | \\()`(\\w+)`").FindAllSubmatch(text, -1)
	if len(named) < 15 {
		t.Errorf("the guide names %d functions", len(named))
	}
	for _, m := range named {
		if file, function := string(m[1]), string(m[2]); !declares(t, file, function) {
			t.Errorf("%s has no function %s", file, function)
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllSubmatch(text, -1) {
		file := string(m[1])
		if file == "test/imports_test.go" {
			file = "../../../" + file
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

func declares(t *testing.T, file, function string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return true
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Name.Name == function {
			return true
		}
	}
	return false
}
