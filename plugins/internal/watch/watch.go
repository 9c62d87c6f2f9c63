// Package watch tells which paths changed, once they are quiet: it watches directories with
// fsnotify and gathers what happens in them, so that a file that is still being written, or a
// thousand files that change at once, are one change.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches directories. It is used by one goroutine; Close ends it.
type Watcher struct {
	events  *fsnotify.Watcher
	heard   *heard
	keep    func(path string) bool
	pending pending
	// dirs are the watched directories and what they were.
	dirs map[string]fs.FileInfo
	// wake ends a wait for changes.
	wake <-chan struct{}
}

// Changes are paths that changed, sorted; or everything, where events were lost.
type Changes struct {
	Paths []string
	Lost  bool
}

// New returns a watcher that reports paths that keep accepts, after settle without an event.
func New(settle time.Duration, keep func(path string) bool) (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &Watcher{events: events, heard: newHeard(), keep: keep, pending: pending{settle: settle}, dirs: make(map[string]fs.FileInfo)}
	go w.heard.listen(events.Events, events.Errors)
	return w, nil
}

// Add watches a directory, not what is below it. Adding it again renews a watch that ended with the
// directory that had its name before.
func (w *Watcher) Add(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	w.dirs[dir] = info
	return w.events.Add(dir)
}

// Sweep ends the watches of paths that mean no directory, or another one, now. It comes before Add
// where directories may have been renamed: a watch belongs to the directory and goes on under the
// old name otherwise.
func (w *Watcher) Sweep() {
	for path, was := range w.dirs {
		if now, err := os.Stat(path); err != nil || !os.SameFile(was, now) {
			delete(w.dirs, path)
			// A watch that has ended by itself is no error.
			_ = w.events.Remove(path)
		}
	}
}

// Watches reports whether a path is, or was when it was last looked at, a directory that is
// watched.
func (w *Watcher) Watches(path string) bool { return w.dirs[path] != nil }

// Close ends watching.
func (w *Watcher) Close() error {
	err := w.events.Close()
	<-w.heard.ended
	return err
}

// Wake has Next return, with no changes, for each value that a channel gives, too.
func (w *Watcher) Wake(by <-chan struct{}) { w.wake = by }

// Next waits for changes. It returns none at the deadline (zero: there is none), and ctx's error
// when ctx ends.
func (w *Watcher) Next(ctx context.Context, deadline time.Time) (Changes, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		paths, err := w.heard.drain()
		for _, x := range paths {
			w.note(x.path, x.at)
		}
		switch {
		case err == nil:
		// An invalid argument is a watch that had ended when it was to end: its directory went.
		case errors.Is(err, fsnotify.ErrEventOverflow), errors.Is(err, syscall.EINVAL):
			return Changes{Lost: true}, nil
		default:
			return Changes{}, fmt.Errorf("watch files: %w", err)
		}
		at, waiting := w.ring(deadline)
		var rung <-chan time.Time
		if waiting {
			timer.Reset(time.Until(at))
			rung = timer.C
		}
		select {
		case <-ctx.Done():
			return Changes{}, ctx.Err()
		case <-w.wake:
			return Changes{}, nil
		case <-w.heard.some:
		case now := <-rung:
			if paths := w.pending.drain(now); len(paths) > 0 || reached(deadline, now) {
				return Changes{Paths: paths}, nil
			}
		}
	}
}

func (w *Watcher) note(path string, at time.Time) {
	if path = filepath.Clean(path); w.keep(path) {
		w.pending.add(path, at)
	}
}

// ring returns when Next has something to do by itself.
func (w *Watcher) ring(deadline time.Time) (time.Time, bool) {
	due, waiting := w.pending.due()
	if deadline.IsZero() || waiting && due.Before(deadline) {
		return due, waiting
	}
	return deadline, true
}

func reached(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }
