package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/disk"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	bolt "go.etcd.io/bbolt"
)

// hang has the disk of a history hang until release is called.
func hang(t *testing.T, h *History) (release func()) {
	t.Helper()
	stuck, hangs := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = disk.On(ctx, h.filed.disk, func() struct{} {
			close(hangs)
			<-stuck
			return struct{}{}
		})
	}()
	<-hangs
	return func() { close(stuck); cancel() }
}

// TestDiskHangs: a disk that doesn't answer keeps nobody for longer than patience, and the next not
// at all; what was noted meanwhile is written down when it answers again, and what it did late is
// taken for no more than it was.
func TestDiskHangs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		said := &strings.Builder{}
		h := newHistory(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(said, nil))})
		w := newWorld(h, 3)
		for range 5 {
			w.revise()
			h.Flush()
		}
		release := hang(t, h)
		began := time.Now()
		_, note, err := h.Pin(Pin{Revision: w.rev, Since: time.Now().UTC()})
		if err != nil || !strings.Contains(note, "the disk does not answer") || !strings.Contains(note, dir) {
			t.Error(note, err)
		}
		if took := time.Since(began); took != disk.Patience {
			t.Errorf("a pin took %v", took)
		}
		for range 20 {
			w.revise()
			h.Flush()
			if n := len(h.log.ops.all); n > 0 {
				t.Fatalf("%d changes wait for the disk", n)
			}
		}
		h.Unpin("none")
		if s := h.Summary(); !strings.Contains(s.Fault, "does not answer") || len(s.Revisions) < 20 {
			t.Errorf("%q, %d revisions", s.Fault, len(s.Revisions))
		}
		if took := time.Since(began); took != disk.Patience {
			t.Errorf("others were kept: %v", took)
		}
		if n := strings.Count(said.String(), "level=ERROR"); n != 1 {
			t.Errorf("it was said %d times: %s", n, said)
		}
		release()
		synctest.Wait()
		time.Sleep(2 * retryPause) // of the bubble
		h.Flush()
		if now, _ := h.Faults(); now || !strings.Contains(said.String(), "the history is written again") {
			t.Errorf("it said: %s", said)
		}
		w.restart(t, Config{Dir: dir})
		if pins, _ := w.h.Pins(); len(pins) != 1 {
			t.Errorf("%d pins are kept", len(pins))
		}
	})
}

// TestDiskHangsAtTheEnd: a core ends although its disk doesn't answer.
func TestDiskHangsAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		said := &strings.Builder{}
		h := newHistory(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(said, nil))})
		w := newWorld(h, 4)
		w.revise()
		release := hang(t, h)
		defer release()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
		if !strings.Contains(said.String(), "what was noted last is not in the history's file") {
			t.Errorf("it said: %s", said)
		}
	})
}

// TestFaultAmid: a fault in the middle of bbolt is an error, nothing of it is called after that,
// and its lock goes all the same.
func TestFaultAmid(t *testing.T) {
	f, err := open(filepath.Join(t.TempDir(), FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	err = whole(f.path, func() error { return f.db.View(func(*bolt.Tx) error { return nil }) })
	d := (*damage)(nil)
	if !errors.As(err, &d) || !d.amid {
		t.Fatalf("%v", err)
	}
	f.abandon(d)
	if taken(f.path) {
		t.Error("its lock is held still")
	}
}

// TestSpoilt: a file that is spoilt while it is in use is set aside, with nothing lost of what is
// in memory; what can still be read of it is read. Those that are set aside don't become more and
// more.
func TestSpoilt(t *testing.T) {
	harms := map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 0) },
		"halved":  func(path string) error { return os.Truncate(path, 16384) },
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("x"), 0o600), os.Rename(path+".new", path))
		},
		"directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	}
	for name, harm := range harms {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "state")
				said := &strings.Builder{}
				h := newHistory(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(said, nil))})
				w := newWorld(h, seed)
				for range 20 {
					w.revise()
				}
				if _, note, err := h.Pin(Pin{Revision: w.rev}); err != nil || note != "" {
					t.Fatal(note, err)
				}
				if seed%2 == 1 {
					w.restart(t, Config{Dir: dir})
					w.h.cfg.Log = h.cfg.Log
				}
				if err := harm(filepath.Join(dir, FileName)); err != nil {
					t.Fatal(err)
				}
				if seed < 2 {
					w.h.Flush()
				} else if _, err := w.h.At(w.rev - 9); err != nil && !strings.Contains(err.Error(), "kept any more") {
					t.Error(err)
				}
				for range 10 {
					w.revise()
					w.h.Flush()
				}
				w.agrees(t)
				if oldest, newest, _ := w.h.log.Span(); newest != w.rev || oldest > newest-10 {
					t.Errorf("%d to %d of %d are kept", oldest, newest, w.rev)
				} else if readable := name == "removed" || name == "replaced" || name == "directory"; readable && oldest > 2 {
					t.Errorf("the file could be read, and revisions up to %d were lost", oldest)
				}
				if now, lost := w.h.Faults(); now || lost != 1 || strings.Count(said.String(), "level=ERROR") != 1 {
					t.Errorf("fault %v, %d lost: %s", now, lost, said)
				}
				w.restart(t, Config{Dir: dir})
				if pins, _ := w.h.Pins(); len(pins) != 1 {
					t.Errorf("%d pins are kept", len(pins))
				}
			})
		}
	}
	t.Run("again and again", func(t *testing.T) {
		dir := t.TempDir()
		h := newHistory(t, Config{Dir: dir})
		w := newWorld(h, 1)
		for range 3 * mostAside {
			w.revise()
			h.Flush()
			if err := os.Truncate(filepath.Join(dir, FileName), 0); err != nil {
				t.Fatal(err)
			}
			h.filed.trouble.until, h.filed.trouble.rest = time.Time{}, 0
			h.Flush()
			h.filed.trouble.until = time.Time{}
			h.Flush()
			w.agrees(t)
		}
		if all, _ := filepath.Glob(filepath.Join(dir, "*.broken-*")); len(all) != mostAside {
			t.Errorf("%d are set aside", len(all))
		}
	})
	t.Run("rests", func(t *testing.T) {
		dir := t.TempDir()
		h := newHistory(t, Config{Dir: dir})
		w := newWorld(h, 2)
		spoil := func() {
			if err := os.Truncate(filepath.Join(dir, FileName), 0); err != nil {
				t.Fatal(err)
			}
			w.revise()
			h.Flush()
		}
		w.revise()
		h.Flush()
		spoil()
		h.filed.trouble.rest = mostRest
		spoil()
		if now, lost := h.Faults(); !now || lost != 2 || h.filed.file != nil || saves(h).tryPause() < mostRest/2 {
			t.Errorf("fault %v, %d lost, next look after %v", now, lost, saves(h).tryPause())
		}
		if _, note, err := h.Pin(Pin{Revision: w.rev}); err != nil || note != "" {
			t.Error("a pin makes no file:", note, err)
		}
	})
	t.Run("taken", func(t *testing.T) {
		dir := t.TempDir()
		h := newHistory(t, Config{Dir: dir})
		w := newWorld(h, 2)
		w.revise()
		h.Flush()
		if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
		other := newHistory(t, Config{Dir: dir})
		_, note, err := h.Pin(Pin{Revision: w.rev})
		if err != nil || !strings.Contains(note, "another control plane has it open") {
			t.Error(note, err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if _, note, err := h.Pin(Pin{Revision: w.rev}); err != nil || note != "" {
			t.Error(note, err)
		}
	})
	wait.Ended(t)
}
