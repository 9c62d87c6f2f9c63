package file

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Source is the directory as a config source.
type Source struct {
	config Config
}

// New returns the source of a config.
func New(c Config) *Source {
	c.Dir = filepath.Clean(c.Dir)
	return &Source{config: c}
}

// Run publishes what the directory holds and then what changes in it, until ctx ends.
func (s *Source) Run(ctx context.Context, out sdk.Publisher) error {
	w, err := watch.New(s.config.Settle, s.concerns)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	if err := newRun(s.config, w, out).run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// concerns reports whether a path of an event may matter. The directory's parent is watched too,
// because the directory itself may be swapped.
func (s *Source) concerns(path string) bool {
	if path == s.config.Dir {
		return true
	}
	if parent := filepath.Dir(s.config.Dir); parent != s.config.Dir && filepath.Dir(path) == parent {
		return false
	}
	name := filepath.Base(path)
	return !catalog.Ignored(name) || isSwap(name)
}

// isSwap reports whether a name is that of the link by which Kubernetes swaps all files of a volume
// at once.
func isSwap(name string) bool { return name == "..data" }

// run is one run of a source.
type run struct {
	config  Config
	out     sdk.Publisher
	cache   *cache
	folders *folders
	// rest is when to forget what checking needs, since nothing was read for a while; zero: it is
	// forgotten.
	rest time.Time
}

// restAfter is how long after the last reading the compiled schemas are kept: they take 20 MB, and
// at most 40 ms to make again.
const restAfter = 15 * time.Second

func newRun(c Config, w *watch.Watcher, out sdk.Publisher) *run {
	return &run{
		config: c, out: out, cache: newCache(c, out.Log),
		folders: &folders{dir: c.Dir, watcher: w, log: out.Log},
	}
}

func (r *run) run(ctx context.Context) error {
	r.scan(time.Now())
	r.relax(time.Now(), true)
	if err := r.publish(); err != nil {
		return err
	}
	if err := r.out.Synced(); err != nil {
		return err
	}
	rescan := r.nextRescan()
	for {
		reads := r.cache.work.reads
		changes, err := r.folders.watcher.Next(ctx, earlier(r.cache.deadline(rescan), r.rest))
		if err != nil {
			return err
		}
		now := time.Now()
		if changes.Lost || !rescan.IsZero() && !now.Before(rescan) {
			r.scan(now)
			rescan = r.nextRescan()
		}
		r.apply(changes.Paths, now)
		if err := r.publish(); err != nil {
			return err
		}
		r.relax(now, r.cache.work.reads > reads)
	}
}

// relax forgets what checking needs when it was not needed for a while.
func (r *run) relax(now time.Time, busy bool) {
	switch {
	case busy:
		r.rest = now.Add(restAfter)
	case !r.rest.IsZero() && !now.Before(r.rest):
		r.rest = time.Time{}
		r.cache.checker.Rest()
		debug.FreeOSMemory()
	}
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (r *run) nextRescan() time.Time {
	if r.config.Rescan == 0 {
		return time.Time{}
	}
	return time.Now().Add(r.config.Rescan)
}

// apply reads the files among paths that changed, or looks at everything where a directory is among
// them. While the directory itself is away its files are, too, and nothing is read.
func (r *run) apply(paths []string, now time.Time) {
	if r.folders.away() {
		r.scan(now)
		return
	}
	files := r.cache.doubtful()
	for _, path := range paths {
		switch {
		case r.folders.isDirectory(path):
			r.scan(now)
		case catalog.Wanted(path):
			files = append(files, path)
		}
	}
	r.cache.read(files, now)
}

// scan looks at everything.
func (r *run) scan(now time.Time) {
	if found := r.folders.scan(); found != nil {
		r.cache.compare(found, now)
	}
}

// publish sends what changed and tells what is wrong.
func (r *run) publish() error {
	ch := r.cache.catalog.Changes()
	for _, table := range ch.Tables() {
		if err := r.out.Update(table, ch.Upserts[table], ch.Deletes[table]); err != nil {
			return err
		}
	}
	return r.tell(ch.Faults)
}

// tell publishes faults and logs those that are new.
func (r *run) tell(c kinds.FaultChange) error {
	for _, f := range c.New {
		f.Log(r.out.Log)
	}
	if text := kinds.LeftOut(c.New); text != "" {
		r.out.Log(sdk.Warn, text+": nobody serves them here", "dir", r.config.Dir)
	}
	if c.Healed {
		r.out.Log(sdk.Info, "nothing is wrong with the configuration files any more", "dir", r.config.Dir)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return r.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}

// isDir reports whether a path leads to a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
