package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/disk"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"golang.org/x/sys/unix"
)

func lines(t *testing.T, file string) (all []Entry) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// run runs a log until all that was added is written.
func run(t *testing.T, l *Log) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// Each entry is a line that only the core's user may read, without what is secret; the last ones
// are remembered.
func TestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	var said bytes.Buffer
	secrets := &mask.Secrets{}
	secrets.Set("a", []string{"hunter22"})
	l := New(file, secrets, slog.New(slog.NewTextHandler(&said, nil)))
	for i := range remembered + 5 {
		l.Add(Acting(t.Context(), "plugins.yaml"), Entry{What: "swap", Plugin: fmt.Sprint("p", i%2), Outcome: "failed", Reasons: []string{"password hunter22"}})
	}
	run(t, l)
	all := lines(t, file)
	if len(all) != remembered+5 || all[0].Who.By != "plugins.yaml" || all[0].Reasons[0] != "password [secret]" || all[0].At.IsZero() {
		t.Errorf("%d lines, the first %+v", len(all), all[0])
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if n, of := len(l.Kept("").Entries), len(l.Kept("p1").Entries); n != remembered || of != remembered/2 {
		t.Errorf("%d are remembered, %d of one plugin", n, of)
	}
	if !strings.Contains(said.String(), "audit=true by=plugins.yaml what=swap plugin=p0 outcome=failed") {
		t.Error(said.String())
	}
}

// A file that grows too large is put aside, once.
func TestRotate(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "audit.jsonl"), most: 10}
	for _, line := range []string{"aaaa\n", "bbbb\n", "cccc\n", "dddd\n", "eeee\n"} {
		if err := f.append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{f.path: "eeee\n", f.path + ".1": "cccc\ndddd\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// What can't be written is said, and written when it can be; whoever adds never waits.
func TestUnwritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "gone")
		said := &words{}
		l := New(filepath.Join(dir, "audit.jsonl"), nil, slog.New(slog.NewTextHandler(said, nil)))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		l.Add(ctx, Entry{What: "swap", Plugin: "a"})
		l.Add(ctx, Entry{What: "restart", Plugin: "a"})
		synctest.Wait()
		if k := l.Kept(""); !strings.Contains(k.Fault, "no such file") || len(k.Entries) != 2 {
			t.Errorf("%+v", k)
		}
		if !strings.Contains(said.String(), "level=ERROR msg=\"the audit log lacks entries\"") {
			t.Error(said.String())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * patience) // of the bubble
		synctest.Wait()
		if all := lines(t, filepath.Join(dir, "audit.jsonl")); len(all) != 2 || l.Kept("").Fault != "" {
			t.Errorf("%+v, fault %q", all, l.Kept("").Fault)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A directory or a device keeps nothing.
func TestNoFile(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/dev/null"} {
		if err := (&file{path: path, most: 10}).append([]byte("a\n")); err == nil {
			t.Errorf("%s was written to", path)
		}
	}
}

// TestReady: what could not be written down is known before it is done, with the reason.
func TestReady(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "audit.jsonl")
	l := New(path, nil, slog.New(slog.DiscardHandler))
	if err := l.Ready(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Error("it is not empty:", info.Size(), err)
	}
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(); err == nil {
		t.Error("a pipe that nobody reads is written to")
	}
	if err := New("", nil, nil).Ready(); err != nil {
		t.Error(err)
	}
}

// TestDiskHangs: a disk that doesn't answer keeps neither who asks nor the end; nothing is written
// twice when it does again.
func TestDiskHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(file, nil, slog.New(slog.DiscardHandler))
		stuck := make(chan struct{})
		go func() {
			_, _ = disk.On(t.Context(), l.disk, func() error { <-stuck; return nil })
		}()
		synctest.Wait()
		began := time.Now()
		for range 3 {
			if err := l.Ready(); !errors.Is(err, disk.ErrLate) {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != disk.Patience {
			t.Errorf("they waited for %v", took)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		l.Add(ctx, Entry{What: "swap", Plugin: "a"})
		synctest.Wait()
		if k := l.Kept(""); !strings.Contains(k.Fault, "does not answer") {
			t.Errorf("%+v", k)
		}
		close(stuck)
		time.Sleep(2 * patience) // of the bubble
		synctest.Wait()
		if all := lines(t, file); len(all) != 1 || l.Ready() != nil {
			t.Errorf("%+v", all)
		}
		stuck = make(chan struct{})
		go func() {
			_, _ = disk.On(t.Context(), l.disk, func() error { <-stuck; return nil })
		}()
		synctest.Wait()
		l.Add(ctx, Entry{What: "swap", Plugin: "b"})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if k := l.Kept(""); !strings.Contains(k.Fault, "1 entries are lost") {
			t.Errorf("%+v", k)
		}
		close(stuck)
	})
}

// words are a log that may be read while it is written.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
