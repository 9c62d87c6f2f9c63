package pem

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// source is the directory as a config source.
type source struct {
	config  Config
	out     sdk.Publisher
	watcher *watch.Watcher
	catalog *catalog.Catalog
	folders map[string]*folder
	// away is why the directory itself can't be read; unwatched are directories that can't be
	// watched.
	away      string
	unwatched map[string]bool
}

func newSource(c Config) *source {
	c.Dir = filepath.Clean(c.Dir)
	return &source{config: c, catalog: catalog.New(), folders: map[string]*folder{}, unwatched: map[string]bool{}}
}

// swap is the link by which Kubernetes swaps all files of a mounted volume at once.
const swap = "..data"

// Run publishes what the directory holds and then what changes in it, until ctx ends.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	w, err := watch.New(s.config.Settle, func(path string) bool {
		name := filepath.Base(path)
		return path == s.config.Dir || name == swap || !catalog.Ignored(name)
	})
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	s.watcher, s.out = w, out
	s.scan(nil)
	if err := s.publish(); err != nil {
		return err
	}
	if err := out.Synced(); err != nil {
		return err
	}
	for rescan := time.Now().Add(s.config.Rescan); ; {
		changes, err := w.Next(ctx, rescan)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if now := time.Now(); !now.Before(rescan) {
			rescan = now.Add(s.config.Rescan)
		}
		s.scan(changes.Paths)
		if err := s.publish(); err != nil {
			return err
		}
	}
}

// scan looks at everything, and reads the folders that are new, have changed, or have a path that
// has.
func (s *source) scan(changed []string) {
	s.watcher.Sweep()
	s.watch(filepath.Dir(s.config.Dir)) // the directory itself may be swapped
	found, err := tree.Walk{Visit: s.watch, Ignored: catalog.Ignored, Wanted: func(name string) bool { return value(name) != "" }}.Dir(s.config.Dir)
	if err != nil {
		if s.away != err.Error() {
			s.away = err.Error()
			s.out.Log(sdk.Warn, "the directory of PEM files cannot be read; what was read last stays", "dir", s.config.Dir, "error", s.away)
		}
		return
	}
	if s.away != "" {
		s.away = ""
		s.out.Log(sdk.Info, "the directory of PEM files can be read again", "dir", s.config.Dir)
	}
	now := group(found)
	for path, f := range s.folders {
		if now[path] == nil && gone(found, f) {
			s.catalog.Drop(path)
			delete(s.folders, path)
		}
	}
	again := map[string]bool{}
	for _, path := range changed {
		again[filepath.Dir(path)] = true
	}
	for path, f := range now {
		if again[path] || !f.same(s.folders[path]) {
			s.folders[path] = f
			s.catalog.Offer(path, path, []kinds.Document{s.config.document(f)})
		}
	}
}

// group returns the folders that files were found in.
func group(found *tree.Found) map[string]*folder {
	out := map[string]*folder{}
	of := func(path string) *folder {
		dir := filepath.Dir(path)
		if out[dir] == nil {
			out[dir] = &folder{path: dir, files: map[string]fs.FileInfo{}}
		}
		return out[dir]
	}
	for path, info := range found.Files {
		of(path).files[path] = info
	}
	for path, err := range found.Unread {
		if value(filepath.Base(path)) != "" {
			of(path).err = err
		}
	}
	return out
}

// gone reports whether all files of a folder are, rather than out of sight.
func gone(found *tree.Found, f *folder) bool {
	for path := range f.files {
		if !found.Missing(path) {
			return false
		}
	}
	return true
}

// watch watches a directory; what can't be watched is looked at by rescans.
func (s *source) watch(dir string) {
	err := s.watcher.Add(dir)
	switch {
	case err == nil:
		delete(s.unwatched, dir)
	case !s.unwatched[dir] && !errors.Is(err, fs.ErrNotExist):
		s.unwatched[dir] = true
		s.out.Log(sdk.Warn, "a directory cannot be watched; its changes are found by rescans alone", "dir", dir, "error", err.Error())
	}
}

// publish sends what has changed, and tells what is wrong.
func (s *source) publish() error {
	ch := s.catalog.Changes()
	for _, table := range ch.Tables() {
		if err := s.out.Update(table, ch.Upserts[table], ch.Deletes[table]); err != nil {
			return err
		}
	}
	for _, f := range ch.Faults.New {
		f.Log(s.out.Log)
	}
	if ch.Faults.Healed {
		s.out.Log(sdk.Info, "nothing is wrong with the PEM files any more", "dir", s.config.Dir)
	}
	if len(ch.Faults.Upserts)+len(ch.Faults.Deletes) == 0 {
		return nil
	}
	return s.out.Update(kinds.FaultTable, ch.Faults.Upserts, ch.Faults.Deletes)
}
