package static

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxDepth bounds directories that lead back to themselves by links.
const maxDepth = 20

// found is what there is to read: files by path, and the directories to watch.
type found struct {
	files map[string]fs.FileInfo
	dirs  map[string]fs.FileInfo
}

// scan looks for the files of a config. visit is called for each directory before it is read, so that a watch set there misses nothing.
func (c *Config) scan(visit func(dir string, info fs.FileInfo)) found {
	f := found{files: map[string]fs.FileInfo{}, dirs: map[string]fs.FileInfo{}}
	if c.Dir != "" {
		f.walk(c.Dir, visit, 0)
		return f
	}
	for _, path := range c.Files {
		dir := filepath.Dir(path)
		if info, err := os.Stat(dir); err == nil && f.dirs[dir] == nil {
			f.dirs[dir] = info
			visit(dir, info)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			f.files[path] = info
		}
	}
	return f
}

// walk follows links, as Kubernetes mounts files behind them.
func (f *found) walk(dir string, visit func(string, fs.FileInfo), depth int) {
	info, err := os.Stat(dir)
	if err != nil || depth > maxDepth {
		return
	}
	f.dirs[dir] = info
	visit(dir, info)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			f.walk(path, visit, depth+1)
		case info.Mode().IsRegular() && readable(path):
			f.files[path] = info
		}
	}
}

// hidden says whether a name is not meant for us: an editor's, or one of the directories behind Kubernetes' links.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~")
}

func readable(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// unchanged says whether two stats are of the same file in the same state.
func unchanged(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}
