package process

import (
	"slices"
	"strings"
	"sync"
)

// tailLines is how many lines of standard error are kept for error messages.
const tailLines = 20

// tail keeps the last lines, and the one that says why a Go program crashed, which a long trace
// would push out.
type tail struct {
	mu    sync.Mutex
	crash string
	kept  []string
}

func newTail() *tail { return &tail{} }

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == tailLines {
		if first := t.kept[0]; t.crash == "" && (strings.HasPrefix(first, "panic: ") || strings.HasPrefix(first, "fatal error: ")) {
			t.crash = first
		}
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	t.kept = append(t.kept, line)
}

// crashed notes the line that says why a program crashed, if it is the first.
func (t *tail) crashed(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash == "" {
		t.crash = line
	}
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash != "" {
		return append([]string{t.crash, "…"}, t.kept...)
	}
	return slices.Clone(t.kept)
}

// quoted returns the lines as the end of an error message.
func (t *tail) quoted() string {
	lines := t.lines()
	if len(lines) == 0 {
		return ""
	}
	return "; its last lines of standard error:\n  " + strings.Join(lines, "\n  ")
}
