package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func TestPendingWaitsForQuiet(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	p := pending{settle: 10 * time.Millisecond}
	if _, ok := p.due(); ok {
		t.Error("due with nothing")
	}
	p.add("a", at(0))
	p.add("b", at(5))
	p.add("a", at(9))
	if due, ok := p.due(); !ok || due != at(19) {
		t.Errorf("due %v", due)
	}
	if got := p.drain(at(18)); got != nil {
		t.Errorf("too early: %v", got)
	}
	if got := p.drain(at(19)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
	if got := p.drain(at(99)); got != nil {
		t.Errorf("twice: %v", got)
	}
}

func TestPendingGoesAheadWithoutTheRestless(t *testing.T) {
	start := time.Unix(1000, 0)
	p := pending{settle: 10 * time.Millisecond}
	p.add("quiet", start)
	for ms := 0; ms < 250; ms += 5 {
		now := start.Add(time.Duration(ms) * time.Millisecond)
		p.add("restless", now)
		if got := p.drain(now); got != nil {
			t.Fatalf("after %d ms: %v", ms, got)
		}
	}
	now := start.Add(250 * time.Millisecond)
	if due, _ := p.due(); due != now {
		t.Errorf("due %v", due)
	}
	if got := p.drain(now); !slices.Equal(got, []string{"quiet"}) {
		t.Errorf("got %v", got)
	}
	if got := p.drain(now.Add(10 * time.Millisecond)); !slices.Equal(got, []string{"restless"}) {
		t.Errorf("got %v", got)
	}
}

func TestNextReportsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	w, err := New(time.Millisecond, func(path string) bool { return !strings.HasSuffix(path, "~") })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprint(i))
		want[path] = true
		for _, name := range []string{path, path + "~"} {
			if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for len(want) > 0 {
		changes, err := w.Next(ctx, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range changes.Paths {
			if strings.HasSuffix(path, "~") {
				t.Errorf("reported %s", path)
			}
			delete(want, path)
		}
	}
}

func TestNextEnds(t *testing.T) {
	w, err := New(time.Millisecond, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if changes, err := w.Next(context.Background(), time.Now().Add(time.Millisecond)); err != nil || changes.Paths != nil {
		t.Errorf("at the deadline: %v, %v", changes, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Next(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestDirectoriesThatGo: whoever adds and ends watches while their directories go is never kept
// waiting.
func TestDirectoriesThatGo(t *testing.T) {
	root := t.TempDir()
	w, err := New(time.Microsecond, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	worked := make(chan error)
	go func() {
		for i := range 1000 {
			dir := filepath.Join(root, fmt.Sprint(i))
			if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
				worked <- err
				return
			}
			_, _ = w.Add(dir), w.Add(filepath.Join(dir, "sub"))
			err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Rename(dir, dir+".old"), os.RemoveAll(dir+".old"))
			if err != nil {
				worked <- err
				return
			}
			if _, err := w.Next(t.Context(), time.Now().Add(100*time.Microsecond)); err != nil {
				worked <- err
				return
			}
			w.Sweep()
		}
		worked <- nil
	}()
	select {
	case err := <-worked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for itself")
	}
}
