package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// folders is the directories: it finds them, and watches each.
type folders struct {
	dir     string
	watcher *watch.Watcher
	log     func(level sdk.Level, text string, args ...any)
	// missing says that the directory itself is away, and unwatched which cannot be watched: each
	// is told once.
	missing   bool
	unwatched map[string]bool
	// unread are those below it that could not be looked at, by the reason that was told.
	unread map[string]string
}

// scan walks the directory and watches what it finds. It returns nil if the directory itself cannot
// be read: that is rather a mistake, or half of a swap, than the wish to have no configuration, so
// that what was read last stays.
func (w *folders) scan() *tree.Found {
	w.watcher.Sweep()
	w.watchParent()
	found, err := scan(w.dir, w.watch)
	if err != nil {
		if !w.missing {
			w.log(sdk.Warn, "the configuration directory cannot be read; what was read last stays", "dir", w.dir, "error", err.Error())
		}
		w.missing = true
		return nil
	}
	if w.missing {
		w.log(sdk.Info, "the configuration directory can be read again", "dir", w.dir)
	}
	w.missing = false
	w.tellUnread(found)
	return found
}

// away reports whether the directory itself cannot be read now.
func (w *folders) away() bool {
	f, err := os.Open(w.dir)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	_, err = f.Readdirnames(1)
	return err != nil && !errors.Is(err, io.EOF)
}

// tellUnread says once what could not be looked at.
func (w *folders) tellUnread(found *tree.Found) {
	now := make(map[string]string, len(found.Unread))
	for path, err := range found.Unread {
		if now[path] = err.Error(); w.unread[path] != now[path] {
			w.log(sdk.Warn, "this cannot be read; what was read of it last stays", "path", path, "error", err.Error())
		}
	}
	w.unread = now
}

// watchParent watches for the directory itself being swapped or coming back.
func (w *folders) watchParent() {
	if parent := filepath.Dir(w.dir); parent != w.dir {
		w.tell(parent, w.watcher.Add(parent))
	}
}

// watch watches a directory of the tree; what cannot be watched is looked at by rescans.
func (w *folders) watch(path string) { w.tell(path, w.watcher.Add(path)) }

func (w *folders) tell(path string, err error) {
	switch {
	case err == nil:
		delete(w.unwatched, path)
	case !w.unwatched[path] && !errors.Is(err, fs.ErrNotExist):
		if w.unwatched == nil {
			w.unwatched = make(map[string]bool)
		}
		w.unwatched[path] = true
		w.log(sdk.Warn, "a directory cannot be watched; its changes are found by rescans alone", "dir", path, "error", err.Error())
	}
}

// isDirectory reports whether a path is a directory, was one at the last scan, or is the link that
// swaps one.
func (w *folders) isDirectory(path string) bool {
	return path == w.dir || w.watcher.Watches(path) || isSwap(filepath.Base(path)) || isDir(path)
}
