package static

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxDepth bounds directories that lead back to themselves by links.
const maxDepth = 20

// coarse is how far apart two writes are at most that a file system gives the same time.
const coarse = 2 * time.Second

// scan returns the files of a config by path. visit is called for each directory before it is read, so that a watch set there
// misses nothing.
func (c *Config) scan(visit func(dir string)) map[string]fs.FileInfo {
	s := scanner{files: map[string]fs.FileInfo{}, visit: visit}
	if c.Dir != "" {
		s.walk(c.Dir, 0)
		return s.files
	}
	seen := map[string]bool{}
	for _, path := range c.Files {
		if dir := filepath.Dir(path); !seen[dir] {
			seen[dir] = true
			visit(dir)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.files[path] = info
		}
	}
	return s.files
}

type scanner struct {
	files map[string]fs.FileInfo
	visit func(dir string)
}

// walk follows links, as Kubernetes mounts files behind them.
func (s *scanner) walk(dir string, depth int) {
	s.visit(dir)
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
		case info.IsDir() && depth < maxDepth:
			s.walk(path, depth+1)
		case info.Mode().IsRegular() && readable(path):
			s.files[path] = info
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

// unchanged says whether two stats are of the same file in the same state. Two writes in quick succession may have one time, so
// a file that was written just before it was read may have changed.
func unchanged(a, b fs.FileInfo, read time.Time) bool {
	return a != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b) && read.Sub(a.ModTime()) > coarse
}
