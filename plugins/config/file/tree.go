package file

import (
	"io/fs"
	"os"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
)

// scan walks a directory and returns the files that are to be read. visit is called for each
// directory before it is read, so that a watch set there misses nothing. An error means that the
// directory itself cannot be read.
func scan(dir string, visit func(path string)) (*tree.Found, error) {
	return tree.Walk{Visit: visit, Ignored: catalog.Ignored, Wanted: catalog.Wanted}.Dir(dir)
}

// same reports whether a file has not changed between two stats.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
