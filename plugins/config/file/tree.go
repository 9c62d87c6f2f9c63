package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
)

// scan walks a directory and returns the files that are to be read. visit is called for each directory before it is read, so that a watch set
// there misses nothing. An error means that the directory itself cannot be read.
func scan(dir string, visit func(path string)) (*tree.Found, error) {
	return tree.Walk{Visit: visit, Ignored: ignored, Wanted: isConfig}.Dir(dir)
}

// ignored reports whether a name is hidden, or an editor's: .a.yaml.swp, .#a.yaml, #a.yaml#, a.yaml~, and Kubernetes' ..data.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~")
}

// isConfig reports whether a file's name is one that is read.
func isConfig(path string) bool {
	if ignored(filepath.Base(path)) {
		return false
	}
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// same reports whether a file has not changed between two stats.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
