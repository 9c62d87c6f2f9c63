package seen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// FileName is its file's in the directory of the core's state.
const FileName = "first-seen"

// head is the file's first line, with its format's number; tail its last one, without which it was
// cut.
const (
	head = "coxswain first-seen 1"
	tail = "end"
)

// The pause between two writes is a second at least, and as many times as long as one took.
const (
	pause = time.Second
	share = 20
)

// Open returns what an earlier run kept in a directory, and keeps it there. Of a file that can't be
// read it says so and begins anew; it is set aside. The error is that there can be none. An empty
// directory's name: nothing is kept.
func Open(dir string, log *slog.Logger) (*Seen, error) {
	s := New()
	if dir == "" {
		return s, nil
	}
	s.path = filepath.Join(dir, FileName)
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stateDir: %w; give this user the right to read and write it, or name another stateDir", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := s.read(f); err != nil {
		aside := s.path + ".broken-" + time.Now().UTC().Format("20060102-150405.000")
		if renamed := os.Rename(s.path, aside); renamed != nil {
			return nil, fmt.Errorf("stateDir: %w", errors.Join(err, renamed))
		}
		log.Error("which objects were there first is not known any more: of those that compete, of different namespaces, all are refused",
			"error", err, "now", aside)
		path := s.path
		s = New()
		s.path = path
	}
	return s, nil
}

// read takes in what write wrote.
func (s *Seen) read(from io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(from, 1<<30))
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != head {
		return fmt.Errorf("%s: it does not begin with %q", s.path, head)
	}
	whole := false
	for line := 2; lines.Scan(); line++ {
		if whole = lines.Text() == tail; whole {
			break
		}
		if len(s.rows) >= s.bound {
			return fmt.Errorf("%s: it has more than %d lines", s.path, s.bound)
		}
		var t times
		var n environment.Name
		words := strings.Split(lines.Text(), " ")
		if len(words) != 4 || !number(words[0], &t.first) || !number(words[1], &t.gone) {
			return fmt.Errorf("%s:%d: it is no FIRST GONE TABLE KEY", s.path, line)
		}
		n.Table, n.Key = words[2], words[3]
		s.rows[n] = t
		s.last = max(s.last, t.first)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if !whole {
		return fmt.Errorf("%s: its end is missing", s.path)
	}
	s.knew = true
	return nil
}

func number(word string, into *int64) (ok bool) {
	n, err := strconv.ParseInt(word, 10, 64)
	*into = n
	return err == nil
}

// Run writes down what is known, until ctx ends, and once more then.
func (s *Seen) Run(ctx context.Context, log *slog.Logger) error {
	if s == nil || s.path == "" {
		return nil
	}
	failed := false
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return s.save()
		}
		began := time.Now()
		err := s.save()
		if err != nil && !failed {
			log.Warn("which objects were there first can't be written: it may not outlive a restart", "error", err)
		}
		if failed = err != nil; failed {
			s.mu.Lock()
			s.touch()
			s.mu.Unlock()
		}
		timer := time.NewTimer(max(pause, share*time.Since(began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return s.save()
		}
	}
}

// save replaces the file if there is something new.
func (s *Seen) save() error {
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	var text strings.Builder
	text.WriteString(head + "\n")
	for n, t := range s.rows {
		if !strings.ContainsAny(n.Table+n.Key, " \t\r\n") {
			fmt.Fprintf(&text, "%d %d %s %s\n", t.first, t.gone, n.Table, n.Key)
		}
	}
	text.WriteString(tail + "\n")
	s.dirty = false
	s.mu.Unlock()
	err := replace(s.path, text.String())
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
	}
	return err
}

// replace writes a file whole or not at all.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), FileName+".new-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
