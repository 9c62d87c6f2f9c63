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

// ground is the directories: it finds them, and watches each.
type ground struct {
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
func (g *ground) scan() *tree.Found {
	g.watcher.Sweep()
	g.watchParent()
	found, err := scan(g.dir, g.watch)
	if err != nil {
		if !g.missing {
			g.log(sdk.Warn, "the configuration directory cannot be read; what was read last stays", "dir", g.dir, "error", err.Error())
		}
		g.missing = true
		return nil
	}
	if g.missing {
		g.log(sdk.Info, "the configuration directory can be read again", "dir", g.dir)
	}
	g.missing = false
	g.tellUnread(found)
	return found
}

// away reports whether the directory itself cannot be read now.
func (g *ground) away() bool {
	f, err := os.Open(g.dir)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	_, err = f.Readdirnames(1)
	return err != nil && !errors.Is(err, io.EOF)
}

// tellUnread says once what could not be looked at.
func (g *ground) tellUnread(found *tree.Found) {
	now := make(map[string]string, len(found.Unread))
	for path, err := range found.Unread {
		if now[path] = err.Error(); g.unread[path] != now[path] {
			g.log(sdk.Warn, "this cannot be read; what was read of it last stays", "path", path, "error", err.Error())
		}
	}
	g.unread = now
}

// watchParent watches for the directory itself being swapped or coming back.
func (g *ground) watchParent() {
	if parent := filepath.Dir(g.dir); parent != g.dir {
		g.tell(parent, g.watcher.Add(parent))
	}
}

// watch watches a directory of the tree; what cannot be watched is looked at by rescans.
func (g *ground) watch(path string) { g.tell(path, g.watcher.Add(path)) }

func (g *ground) tell(path string, err error) {
	switch {
	case err == nil:
		delete(g.unwatched, path)
	case !g.unwatched[path] && !errors.Is(err, fs.ErrNotExist):
		if g.unwatched == nil {
			g.unwatched = make(map[string]bool)
		}
		g.unwatched[path] = true
		g.log(sdk.Warn, "a directory cannot be watched; its changes are found by rescans alone", "dir", path, "error", err.Error())
	}
}

// isDirectory reports whether a path is a directory, was one at the last scan, or is the link that
// swaps one.
func (g *ground) isDirectory(path string) bool {
	return path == g.dir || g.watcher.Watches(path) || isSwap(filepath.Base(path)) || isDir(path)
}
