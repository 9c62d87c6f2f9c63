package test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// goFiles calls with each Go file below a folder, by its slashed path from here: testdata and
// hidden folders are left out.
func goFiles(t *testing.T, root string, with func(file string) error) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || path != root && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		return with(filepath.ToSlash(path))
	})
	if err != nil {
		t.Fatal(err)
	}
}
