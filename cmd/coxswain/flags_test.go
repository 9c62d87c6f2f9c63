package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsThatTextsName: a flag that a text of the core or of the commands tells people to give is
// one of some command.
func TestFlagsThatTextsName(t *testing.T) {
	known := map[string]bool{"help": true, "version": true, "verbose": true} // verbose of an example's plugin
	tree(t, func(c *cobra.Command) {
		note := func(f *pflag.Flag) { known[f.Name] = true }
		c.Flags().VisitAll(note)
		c.InheritedFlags().VisitAll(note)
	})
	named := regexp.MustCompile("(?:^|[\\s(`'\"])--([a-zA-Z][a-zA-Z-]+)")
	for _, dir := range []string{"../../core", "."} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				for _, found := range named.FindAllStringSubmatch(text, -1) {
					if !known[found[1]] {
						t.Errorf("%s names --%s, which no command has: %q", path, found[1], text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
