// Package tree finds files below a directory, for plugins that read them: it follows links as far
// as they lead to something of bounded size, and tells what is gone from what only could not be
// looked at.
package tree

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinked is how many directories links may lead to, all together: one to / or /proc leads to
// more than anybody means to read.
const maxLinked = 1000

// Walk says what to look for.
type Walk struct {
	// Visit is called for each directory before it is read, so that a watch set there misses
	// nothing.
	Visit func(dir string)
	// Ignored says which names are nobody's, and Wanted which files are to be read.
	Ignored, Wanted func(name string) bool
}

// Found is what a walk found.
type Found struct {
	// Files are those to read, by path, with what their targets' stat says.
	Files map[string]fs.FileInfo
	// Unread are files and directories that are there and could not be looked at, and why: nobody
	// knows what they hold.
	Unread map[string]error
}

// errFar is why a link is not followed, and nothing behind it is read: which part of it came first
// would be chance.
var errFar = errors.New("links lead to more than 1000 directories from here; this one is not followed")

// Dir walks a directory. Entries that vanish meanwhile are left out; an error means that the
// directory itself cannot be read.
func (w Walk) Dir(dir string) (*Found, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	s := &steps{Walk: w, found: &Found{Files: map[string]fs.FileInfo{}, Unread: map[string]error{}}}
	return s.found, s.dir(dir, []string{real}, false)
}

// Missing reports whether a file that was not found is gone, rather than out of sight.
func (f *Found) Missing(path string) bool {
	if f.Files[path] != nil {
		return false
	}
	for at := range f.Unread {
		if path == at || strings.HasPrefix(path, at+string(filepath.Separator)) {
			return false
		}
	}
	return true
}

// steps is a walk under way.
type steps struct {
	Walk
	found *Found
	// linked counts directories behind links.
	linked int
}

// dir reads a directory; above are the real paths that lead to it, since links may lead back.
func (s *steps) dir(dir string, above []string, linked bool) error {
	if linked {
		if s.linked++; s.linked > maxLinked {
			return errFar
		}
	}
	s.Visit(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if s.Ignored(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		err := s.entry(path, e, above, linked)
		switch {
		case errors.Is(err, errFar) && linked:
			return err // the link that led here is to blame
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			s.found.Unread[path] = err
		}
	}
	return nil
}

func (s *steps) entry(path string, e fs.DirEntry, above []string, linked bool) error {
	link := e.Type()&fs.ModeSymlink != 0
	if !link && !e.IsDir() && !s.Wanted(e.Name()) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		real, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(above, real) {
			return err
		}
		err = s.dir(path, append(slices.Clip(above), real), linked || link)
		if errors.Is(err, errFar) && !linked {
			s.forget(path)
		}
		return err
	case info.Mode().IsRegular() && s.Wanted(e.Name()):
		s.found.Files[path] = info
	}
	return nil
}

// forget drops what was found below a directory.
func (s *steps) forget(dir string) {
	below := func(path string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }
	maps.DeleteFunc(s.found.Files, func(path string, _ fs.FileInfo) bool { return below(path) })
	maps.DeleteFunc(s.found.Unread, func(path string, _ error) bool { return below(path) })
}
