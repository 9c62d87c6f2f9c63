package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// scan walks a directory and returns the files that are to be read, by path, with what their targets' stat says. visit is
// called for each directory before it is read, so that a watch set there misses nothing. Entries that vanish meanwhile
// are left out; an error means that the directory itself cannot be read.
func scan(dir string, visit func(path string)) (map[string]fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	w := walk{files: make(map[string]fs.FileInfo), visit: visit}
	return w.files, w.dir(dir, []string{real})
}

type walk struct {
	files map[string]fs.FileInfo
	visit func(path string)
}

// dir reads a directory; above are the real paths that lead to it, since links may lead back.
func (w *walk) dir(dir string, above []string) error {
	w.visit(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !ignored(name) {
			w.entry(filepath.Join(dir, name), e, above)
		}
	}
	return nil
}

func (w *walk) entry(path string, e fs.DirEntry, above []string) {
	link := e.Type()&fs.ModeSymlink != 0
	if !link && !e.IsDir() && !isConfig(path) {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.IsDir():
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.Contains(above, real) {
			_ = w.dir(path, append(slices.Clip(above), real))
		}
	case info.Mode().IsRegular() && isConfig(path):
		w.files[path] = info
	}
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
