package static

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
)

// coarse is how far apart two writes are at most that a file system gives the same time.
const coarse = 2 * time.Second

// scan returns the files of a config. visit is called for each directory before it is read, so that
// a watch set there misses nothing. Files of a directory that can't be read are out of sight, not
// gone.
func (c *Config) scan(visit func(dir string)) *tree.Found {
	if c.Dir != "" {
		w := tree.Walk{Visit: visit, Ignored: hidden, Wanted: readable}
		found, err := w.Dir(c.Dir)
		if err != nil {
			visit(filepath.Dir(c.Dir)) // to see it come back, which it may have by now
			found, err = w.Dir(c.Dir)
		}
		if err != nil {
			return &tree.Found{Unread: map[string]error{c.Dir: err}}
		}
		return found
	}
	found := &tree.Found{Files: map[string]fs.FileInfo{}, Unread: map[string]error{}}
	seen := map[string]bool{}
	for _, path := range c.Files {
		if dir := filepath.Dir(path); !seen[dir] {
			seen[dir] = true
			visit(dir)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			found.Unread[path] = err
		case err == nil && info.Mode().IsRegular():
			found.Files[path] = info
		}
	}
	return found
}

// hidden reports whether a name is not meant for us: an editor's, or one of the directories behind
// Kubernetes' links.
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

// unchanged reports whether two stats are of the same file in the same state. Two writes in quick
// succession may have one time, so a file that was written just before it was read may have
// changed.
func unchanged(a, b fs.FileInfo, read time.Time) bool {
	return a != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b) && read.Sub(a.ModTime()) > coarse
}
