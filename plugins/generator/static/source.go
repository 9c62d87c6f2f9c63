package static

import (
	"context"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// settle is how long a path must be quiet before it is read.
	settle = 20 * time.Millisecond
	// rescan is how often everything is looked at even without an event.
	rescan = time.Minute
)

// Run is a sdk.Source's: it publishes what the files hold, and follows them.
func (g *generator) Run(ctx context.Context, out sdk.Publisher) error {
	w, err := watch.New(settle, func(string) bool { return true })
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // it ends anyway
	s := source{config: g.config, set: set{offered: g.offered, files: map[string]*file{}}, watcher: w, unwatched: map[string]bool{}, out: out}
	if err := s.follow(); err != nil {
		return err
	}
	if err := out.Synced(); err != nil {
		return err
	}
	for {
		if _, err := w.Next(ctx, time.Now().Add(rescan)); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := s.follow(); err != nil {
			return err
		}
	}
}

// source follows the files of a config.
type source struct {
	config  Config
	set     set
	watcher *watch.Watcher
	// unwatched are directories that can't be watched, and have been complained of.
	unwatched map[string]bool
	out       sdk.Publisher
}

// follow looks at all files, and publishes what changed.
func (s *source) follow() error {
	s.watcher.Sweep()
	e := s.set.refresh(s.config.scan(s.watch))
	for _, err := range e.faults {
		s.out.Log(sdk.Error, "file not taken; its last good resources stay", "error", err)
	}
	if len(e.upserts)+len(e.deletes) == 0 {
		return nil
	}
	for _, c := range s.set.clashes() {
		s.out.Log(sdk.Warn, "two files have a resource of the same name; the first by path counts", "type",
			c.typeURL, "name", c.name, "first", c.first, "second", c.second)
	}
	s.out.Log(sdk.Info, "files changed", "resources", len(e.upserts), "removed", len(e.deletes))
	return s.out.Update(table, e.upserts, e.deletes)
}

// watch watches a directory. What can't be watched is seen by the next rescan.
func (s *source) watch(dir string) {
	err := s.watcher.Add(dir)
	if err != nil && !s.unwatched[dir] {
		s.out.Log(sdk.Warn, "directory can't be watched; changes are seen once a minute", "dir", dir, "error", err)
	}
	s.unwatched[dir] = err != nil
}
