// Package audit keeps who changed what of the plugins: the last entries in memory, for those who
// ask, and all of them as lines of JSON in a file.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/disk"
	"github.com/coxswain-mesh/coxswain/core/mask"
)

// Entry is one change, or what came of the attempt.
type Entry struct {
	At  time.Time `json:"time"`
	Who Who       `json:"who"`
	// What was wanted: swap, restart, enable, disable, add, remove, rollback, hold apply, hold
	// drop, failure; pin and unpin, of proxies.
	What   string `json:"what"`
	Plugin string `json:"plugin"`
	// From and To say what ran and what runs.
	From *Program `json:"from,omitempty"`
	To   *Program `json:"to,omitempty"`
	// Changed are the keys of the plugin's entry that differ.
	Changed []string `json:"changed,omitempty"`
	Force   bool     `json:"force,omitempty"`
	// Ephemeral: plugins.yaml was left as it is.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Outcome is switched, refused, failed, rolled back or done.
	Outcome string   `json:"outcome"`
	Summary string   `json:"summary,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Program is what a plugin runs. SHA256 is what its entry pins; empty: nothing.
type Program struct {
	Name   string `json:"program"`
	SHA256 string `json:"sha256,omitempty"`
}

// Kept is what is kept, as it is shown.
type Kept struct {
	// Entries are the last ones, the oldest first.
	Entries []Entry `json:"entries"`
	// File has all of them; empty: there is none. Fault is why it lacks some.
	File  string `json:"file,omitempty"`
	Fault string `json:"fault,omitempty"`
}

const (
	// remembered is how many entries are kept in memory.
	remembered = 1000
	// waiting is how many may wait for the file.
	waiting = 10_000
	// patience is how long a line waits that could not be written, before it is tried again.
	patience = 5 * time.Second
)

// Log takes entries. A nil one takes none.
type Log struct {
	file    file
	secrets *mask.Secrets
	log     *slog.Logger
	queue   chan []byte
	disk    *disk.Disk

	mu      sync.Mutex
	entries []Entry
	fault   string
	lost    int
}

// New makes a log that writes to a file; empty: to none. Run must be called.
func New(path string, secrets *mask.Secrets, log *slog.Logger) *Log {
	return &Log{file: file{path: path, most: mostBytes}, secrets: secrets, log: log, queue: make(chan []byte, waiting), disk: disk.New(nil)}
}

// Add takes an entry, by whom the context says. It never waits for the file.
func (l *Log) Add(ctx context.Context, e Entry) {
	if l == nil {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.Who = from(ctx)
	l.log.Info("audit", "audit", true, "by", e.Who.String(), "what", e.What, "plugin", e.Plugin, "outcome", e.Outcome)
	line, err := l.secrets.JSON(e)
	l.mu.Lock()
	l.entries = append(l.entries, e)
	l.entries = l.entries[max(0, len(l.entries)-remembered):]
	l.mu.Unlock()
	if l.file.path == "" {
		return
	}
	if err != nil {
		l.fail(err, 1)
		return
	}
	select {
	case l.queue <- append(line, '\n'):
	default:
		l.fail(fmt.Errorf("%d entries wait for it", waiting), 1)
	}
}

// Kept returns the last entries, of one plugin or, for an empty name, of all.
func (l *Log) Kept(plugin string) Kept {
	if l == nil {
		return Kept{Entries: []Entry{}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := Kept{Entries: append([]Entry{}, l.entries...), File: l.file.path, Fault: l.fault}
	if plugin != "" {
		k.Entries = slices.DeleteFunc(k.Entries, func(e Entry) bool { return e.Plugin != plugin })
	}
	return k
}

// Run writes what was added, until ctx ends. What can't be written is tried again.
func (l *Log) Run(ctx context.Context) error {
	if l.file.path == "" {
		return nil
	}
	if err := l.once(nil)(); err != nil {
		l.fail(err, 0)
	}
	for {
		select {
		case line := <-l.queue:
			l.write(ctx, line)
		case <-ctx.Done():
			l.drain()
			return nil
		}
	}
}

// write writes a line, sooner or later.
func (l *Log) write(ctx context.Context, line []byte) {
	write := l.once(line)
	for {
		err := write()
		if err == nil {
			l.mended()
			return
		}
		l.fail(err, 0)
		select {
		case <-time.After(patience):
		case <-ctx.Done():
			if err := write(); err != nil {
				l.fail(err, 1)
			}
			return
		}
	}
}

// drain writes what is left at the end.
func (l *Log) drain() {
	for {
		select {
		case line := <-l.queue:
			if err := l.once(line)(); err != nil {
				l.fail(err, 1)
			}
		default:
			return
		}
	}
}

// once returns what writes a line, and, called again because the disk was late, does not write it
// twice.
func (l *Log) once(line []byte) func() error {
	written := false // what is done is done one at a time
	return func() error {
		return l.do(func() error {
			if written {
				return nil
			}
			err := l.file.append(line)
			written = err == nil
			return err
		})
	}
}

// do does something with the file. The error is that of it, or that the disk does not answer.
func (l *Log) do(what func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), disk.Patience)
	defer cancel()
	err, late := disk.On(ctx, l.disk, what)
	return cmp.Or(late, err)
}

// Ready returns why what is done now could not be written down; nil: it can be, and there is room
// for it. Where no file is kept there is nothing to be written.
func (l *Log) Ready() error {
	if l == nil || l.file.path == "" {
		return nil
	}
	if len(l.queue) >= waiting/2 {
		return fmt.Errorf("the audit log %s: %d entries wait for it", l.file.path, len(l.queue))
	}
	if err := l.do(l.file.ready); err != nil {
		return fmt.Errorf("the audit log can't be written (%s): %w", l.file.path, err)
	}
	return nil
}

// fail says, once for each reason, why the file lacks entries; lost ones never come.
func (l *Log) fail(err error, lost int) {
	text := l.file.path + " can't be written: " + err.Error()
	l.mu.Lock()
	l.lost += lost
	if l.lost > 0 {
		text += fmt.Sprintf(" (%d entries are lost to it)", l.lost)
	}
	said := l.fault == text
	l.fault = text
	l.mu.Unlock()
	if !said {
		l.log.Error("the audit log lacks entries", "reason", text)
	}
}

// mended forgets a fault, unless entries were lost for good.
func (l *Log) mended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != "" && l.lost == 0 {
		l.fault = ""
		l.log.Info("the audit log is written again", "file", l.file.path)
	}
}
